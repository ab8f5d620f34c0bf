package recording

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// segmentOf builds a segment of frames with valid headers and checksums and arbitrary bodies.
func segmentOf(t testing.TB, bodies ...func(f *frame) []byte) []byte {
	t.Helper()
	return segmentWith(t, Header{Recording: "r"}, bodies...)
}

func segmentWith(t testing.TB, h Header, bodies ...func(f *frame) []byte) []byte {
	t.Helper()
	file, err := h.encode()
	if err != nil {
		t.Fatal(err)
	}
	disk := &memory{b: file}
	w := &writer{file: disk, off: int64(len(file))}
	if w.enc, err = newEncoder(); err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		f := frame{kind: frameEvents}
		b := body(&f)
		w.buf = append(make([]byte, frameSize), b...)
		if f.kind != frameNote {
			w.buf = w.enc.EncodeAll(b, make([]byte, frameSize))
		}
		if f.raw == 0 {
			f.raw = len(b)
		}
		if err := w.frame(&f); err != nil {
			t.Fatal(err)
		}
	}
	return disk.b
}

// walk reads all of a segment and returns how many bytes of lines it has.
func walk(file []byte) (lines int, err error) {
	r, err := recordingOf(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return 0, err
	}
	defer r.Close()
	c := r.Cursor(0)
	for {
		e, err := c.Next()
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		lines += len(e.Line)
	}
}

func hostile(t testing.TB) map[string][]byte {
	zeros := func(f *frame) []byte { f.entries = maxBody / minEntry; return make([]byte, maxBody) }
	return map[string][]byte{
		"zeros that fill a frame": segmentOf(t, zeros, zeros, zeros),
		"a line longer than its frame": segmentOf(t, func(f *frame) []byte {
			f.entries = 1
			return append([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, "abc"...)
		}),
		"more entries than declared": segmentOf(t, func(f *frame) []byte { f.entries = 1; return make([]byte, 100) }),
		"more bytes than declared":   segmentOf(t, func(f *frame) []byte { f.raw = 1; return make([]byte, maxBody/2) }),
		"a note that is not JSON":    segmentOf(t, func(f *frame) []byte { f.kind = frameNote; return []byte("{") }),
		"a note of unknown kinds": segmentOf(t, func(f *frame) []byte {
			f.kind = frameNote
			return []byte(`{"type":"lost","lost":{"dream":3,"token":1}}`)
		}),
		"engines beyond the limit": segmentWith(t, Header{Recording: "r", MultiEngine: true}, func(f *frame) []byte {
			f.kind = frameNote
			return []byte(`{"type":"sources","first":4095,"sources":[{"name":"the last"},{"name":"one more"}]}`)
		}, func(f *frame) []byte {
			f.kind = frameNote
			return []byte(`{"type":"sources","first":-1,"sources":[{"name":"none"},{"name":"nor this"}]}`)
		}, func(f *frame) []byte {
			f.entries = 2
			return []byte{0, 1, 1, 'a', 0, 0xff, 0xff, 0xff, 0x7f, 1, 'b'}
		}),
	}
}

// TestHostileFilesTakeLittleMemory reads small files that declare large sizes or decompress to much data.
func TestHostileFilesTakeLittleMemory(t *testing.T) {
	eventtest.SkipUnderRace(t)
	cases := hostile(t)
	claim := segmentOf(t, func(f *frame) []byte { return []byte{0, 0} })
	f := frame{kind: frameEvents, stored: maxBody, raw: maxBody}
	var b [frameSize]byte
	f.put(b[:])
	cases["a frame longer than its file"] = append(claim, b[:]...)
	for name, file := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := walk(file)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4*maxBody {
			t.Errorf("%s: reading %d bytes allocated %d", name, len(file), took)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDropsOfUnknownKindsAreCounted(t *testing.T) {
	file := hostile(t)["a note of unknown kinds"]
	r, err := recordingOf(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Dropped.Total() != 4 || r.Dropped[event.KindToken] != 1 {
		t.Errorf("dropped %v, want one token and three others", r.Dropped)
	}
}

func FuzzReader(f *testing.F) {
	for _, file := range hostile(f) {
		f.Add(file)
	}
	for _, several := range []bool{false, true} {
		good := segmentWith(f, Header{Recording: "r", MultiEngine: several}, func(fr *frame) []byte {
			b := block{multiEngine: several}
			for i, e := range session() {
				line, err := plain{}.Append(nil, &e)
				if err != nil {
					f.Fatal(err)
				}
				b.add(event.Time(i), i%3, line)
			}
			*fr = b.frame
			fr.kind = frameState
			return b.body
		})
		f.Add(good)
		f.Add(append(good, good...))
		f.Add(good[:len(good)-1])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<16 {
			t.Skip("larger files find nothing new")
		}
		_, _ = walk(file)
	})
}

// FuzzEntries feeds arbitrary bodies to the entries decoder, since random changes to a file do not pass its checksums.
func FuzzEntries(f *testing.F) {
	for _, several := range []bool{false, true} {
		b := block{multiEngine: several}
		b.add(5, 3, []byte("a line"))
		b.add(3, MaxEngines-1, nil)
		f.Add(b.body, several)
		f.Add([]byte{1}, several)
		f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, several)
	}
	f.Fuzz(func(t *testing.T, body []byte, several bool) {
		e, n := entries{body: body, remaining: len(body), multiEngine: several}, 0
		for {
			_, source, line, ok := e.next()
			if !ok {
				return
			}
			if source < 0 || source >= MaxEngines || source > 0 && !several {
				t.Fatalf("source %d", source)
			}
			if n += len(line); n > len(body) {
				t.Fatalf("%d bytes of lines in %d bytes", n, len(body))
			}
		}
	})
}
