package answers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// pieces is an answer in pieces: an empty one is a hole. It lends what it has, and overwrites that when it is read again.
type pieces struct {
	left   [][]byte
	lent   []byte
	at     int  // which one was lent last, by how many follow
	resume bool // ErrMore follows each piece
	said   bool // it was returned
}

// Piece implements inPlace.
func (p *pieces) Piece() ([]byte, error) {
	copy(p.lent, bytes.Repeat([]byte{'\n'}, len(p.lent)))
	p.lent = nil
	if p.said = p.resume && !p.said; p.said {
		return nil, ErrMore
	}
	if len(p.left) == 0 {
		return nil, io.EOF
	}
	p.lent, p.left = slices.Clone(p.left[0]), p.left[1:]
	p.at = len(p.left)
	if len(p.lent) == 0 {
		return nil, ErrLost
	}
	return p.lent, nil
}

// Read implements io.Reader.
func (p *pieces) Read(to []byte) (int, error) {
	b, err := p.Piece()
	n := copy(to, b)
	if n < len(b) {
		p.left, p.said = append([][]byte{slices.Clone(b[n:])}, p.left...), true
	}
	return n, err
}

// FuzzResume checks that an answer that is read where it lies, and as far as it has come, is read as any other.
func FuzzResume(f *testing.F) {
	f.Add(byte(0), []byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\nid: 7\ndata: {\"choices\":[{\"delta\":\ndata: {\"content\":\"b\"}}]}\n\nevent: error\ndata: {}\n\ndata: [DONE]\n\n"), []byte{1, 30, 0, 2, 9})
	f.Add(byte(0), []byte("event: error\ndata: {\"a\":\ndata: 1}\n\n"), []byte{5})
	f.Add(byte(1), []byte("{\"model\":\"q\",\"message\":{\"content\":\"a\"}}\n\n{\"done\":true,\"eval_count\":3}\r\n{"), []byte{7, 41, 1, 0})
	f.Add(byte(2), []byte("{\"choices\":[{\"message\":{\"content\":\"a b\"}}],\"usage\":{\"prompt_tokens\":3}}"), []byte{8})
	f.Fuzz(func(t *testing.T, form byte, answer, cuts []byte) {
		kind := [...]string{"text/event-stream", "application/x-ndjson", "application/json"}[form%3]
		var all [][]byte
		for i := 0; len(answer) > 0; i++ {
			n := 1
			if len(cuts) > 0 {
				n = min(int(cuts[i%len(cuts)]), len(answer))
			}
			all, answer = append(all, answer[:n]), answer[n:]
			if i > len(cuts) && n == 0 {
				break
			}
		}
		read := func(from io.Reader, p *pieces) (out []Message, errs []error) {
			in, err := NewReader(Of(chat), http.StatusOK, http.Header{"Content-Type": {kind}}, from, func() event.Time { return 0 })
			for err == nil {
				var m *Message
				if m, err = in.Next(); err == ErrMore {
					err = nil
					continue
				}
				if errs = append(errs, err); m != nil {
					out = append(out, *m)
					out[len(out)-1].Parts, out[len(out)-1].again, out[len(out)-1].Prompt = slices.Clone(m.Parts), false, p.at
				}
				if errors.Is(err, ErrJSON) || err == ErrLost || err == ErrLong {
					err = nil
				}
			}
			return out, errs
		}
		plain, resumed := &pieces{left: all}, &pieces{left: all, resume: true}
		want, wantErrs := read(struct{ io.Reader }{plain}, plain)
		got, gotErrs := read(resumed, resumed)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotErrs, wantErrs) {
			t.Errorf("%q:\n%+v, %v\n%+v, %v", all, got, gotErrs, want, wantErrs)
		}
	})
}
