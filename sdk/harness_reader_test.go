package sdk

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"testing"
	"time"
)

// kinds maps the type of a line to the kind of its events.
var kinds = map[string]string{
	"engine": "engine", "model": "model", "req": "request", "stage": "stage", "tok": "token", "experts": "experts", "kv": "kv",
	"step": "step", "host": "host", "count": "counters", "log": "log", "ops": "ops", "draft": "speculation", "usage": "usage",
}

// Line is a line of an engine: its type, its members, and its raw form.
type Line struct {
	Type string
	Keys map[string]any
	Raw  string
}

// Reader is a connection to an engine that counts the received events.
type Reader struct {
	t      testing.TB
	check  func([]byte) error
	buffer *bufio.Reader // much smaller than a socket's

	Lines     []Line
	Delivered map[string]uint64 // events by kind
	Lost      map[string]uint64
	Bytes     int
	Torn      string // an incomplete last line
	syncing   bool
	Syncs     int
}

// Connect connects to an engine. check is another decoder that must accept all lines.
func Connect(t testing.TB, address string, check func([]byte) error) *Reader {
	t.Helper()
	conn := dial(t, address)
	return &Reader{t: t, check: check, buffer: bufio.NewReader(conn), Delivered: map[string]uint64{}, Lost: map[string]uint64{}}
}

// dial opens a connection with a deadline.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	network, at, _ := strings.Cut(address, ":")
	conn, err := net.Dial(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// Read reads until a line of the given type, and returns it.
func (r *Reader) Read(until string) Line {
	r.t.Helper()
	line, ok := r.read(until)
	if !ok {
		r.t.Fatalf("the connection ended without a line of type %s", until)
	}
	return line
}

// Rest reads until the engine closes the connection.
func (r *Reader) Rest() {
	r.t.Helper()
	r.read("")
}

// Begun reads until a line of the given type starts, and leaves that line unread.
func (r *Reader) Begun(kind string) {
	r.t.Helper()
	begin := fmt.Sprintf(`{"t":%q`, kind)
	for {
		head, err := r.buffer.Peek(len(begin))
		if err != nil {
			r.t.Fatalf("wait for a line of type %s: %v", kind, err)
		}
		if string(head) == begin {
			return
		}
		r.next()
	}
}

// Settle reads until all events are received or reported as dropped.
func (r *Reader) Settle(want map[string]uint64) {
	r.t.Helper()
	for err := r.balanced(want); err != nil; err = r.balanced(want) {
		if _, ok := r.next(); !ok {
			r.t.Fatalf("the connection ended: %v", err)
		}
	}
}

// read reads until a line of the given type, or the end.
func (r *Reader) read(until string) (line Line, ok bool) {
	r.t.Helper()
	for {
		if line, ok = r.next(); !ok || line.Type == until {
			return line, ok
		}
	}
}

// next reads a line; ok is false at the end.
func (r *Reader) next() (line Line, ok bool) {
	r.t.Helper()
	raw, err := r.buffer.ReadString('\n')
	r.Bytes += len(raw)
	if err != nil {
		if err != io.EOF && !strings.Contains(err.Error(), "reset") {
			r.t.Fatalf("read from the engine: %v; so far delivered %v, dropped %v", err, r.Delivered, r.Lost)
		}
		r.Torn = raw
		return Line{}, false
	}
	return r.account(strings.TrimSuffix(raw, "\n")), true
}

// account checks a line against the protocol and counts its events.
func (r *Reader) account(raw string) Line {
	r.t.Helper()
	line := Line{Raw: raw, Keys: map[string]any{}}
	if err := json.Unmarshal([]byte(raw), &line.Keys); err != nil {
		r.t.Fatalf("%v: %.200s", err, raw)
	}
	if err := r.check([]byte(raw)); err != nil {
		r.t.Fatalf("%v: %.200s", err, raw)
	}
	line.Type, _ = line.Keys["t"].(string)
	if len(r.Lines) == 0 && line.Type != "hello" {
		r.t.Fatalf("the first line is not hello: %s", raw)
	}
	r.Lines = append(r.Lines, line)
	switch line.Type {
	case "sync":
		r.syncing = true
		r.Syncs++
	case "synced":
		r.syncing = false
	case "lost":
		clear(r.Lost)
		for kind, n := range line.Keys["by"].(map[string]any) {
			r.Lost[kind] = uint64(n.(float64))
		}
		r.balance(line)
	case "clock":
		r.balance(line)
	default:
		if kind := kinds[line.Type]; kind != "" && !r.syncing {
			r.Delivered[kind] += events(line)
		}
	}
	return line
}

// events returns the number of events in a line.
func events(line Line) uint64 {
	if a, ok := line.Keys["a"].([]any); ok {
		return uint64(len(a))
	}
	return 1
}

// balance compares the counts of this side with those of the engine.
func (r *Reader) balance(line Line) {
	r.t.Helper()
	if q := uint64(line.Keys["q"].(float64)); q != sum(r.Delivered)+sum(r.Lost) {
		r.t.Errorf("delivered %d, dropped %d, but the engine reports %d: %s", sum(r.Delivered), sum(r.Lost), q, line.Raw)
	}
}

func sum(counts map[string]uint64) (n uint64) {
	for _, v := range counts {
		n += v
	}
	return n
}

// Of returns the lines of a type for a request, with batches split; request 0 is any.
func (r *Reader) Of(kind string, request float64) (lines []Line) {
	for _, batch := range r.Lines {
		if batch.Type != kind {
			continue
		}
		for _, l := range apart(batch) {
			if request == 0 || l.Keys["r"] == request {
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// apart splits a batch into one line per event.
func apart(batch Line) []Line {
	if _, ok := batch.Keys["a"].([]any); !ok {
		return []Line{batch}
	}
	lines := make([]Line, events(batch))
	for i := range lines {
		lines[i] = Line{batch.Type, maps.Clone(batch.Keys), batch.Raw}
	}
	for key, value := range batch.Keys {
		column, ok := value.([]any)
		if !ok {
			continue
		}
		last := 0.0
		for i, v := range column {
			if n, ok := v.(float64); ok && (key == "a" || key == "i" || key == "s") {
				last += n // later entries are differences
				v = last
			}
			lines[i].Keys[key] = v
		}
	}
	return lines
}

// Expect compares the counts with the number of emitted events of each kind.
func (r *Reader) Expect(want map[string]uint64) {
	r.t.Helper()
	if err := r.balanced(want); err != nil {
		r.t.Error(err)
	}
}

func (r *Reader) balanced(want map[string]uint64) (err error) {
	for kind, n := range want {
		if got := r.Delivered[kind] + r.Lost[kind]; got != n {
			err = errors.Join(err, fmt.Errorf("%s: delivered %d and dropped %d, but %d were emitted", kind, r.Delivered[kind], r.Lost[kind], n))
		}
	}
	return err
}

// find returns the first line of a type with the given members.
func (r *Reader) find(kind string, keys map[string]any) (Line, error) {
	for _, l := range r.Of(kind, 0) {
		same := true
		for k, v := range keys {
			same = same && fmt.Sprint(l.Keys[k]) == fmt.Sprint(v)
		}
		if same {
			return l, nil
		}
	}
	return Line{}, fmt.Errorf("no %s line with %v", kind, keys)
}
