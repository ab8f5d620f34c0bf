package recording

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// walk reads all of a segment and returns how many bytes of lines it has.
func walk(file []byte) (lines int, d Damage, err error) {
	r, err := recordingOf(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return 0, d, err
	}
	defer r.Close()
	c := r.Cursor(0)
	for {
		e, err := c.Next()
		if err == io.EOF {
			return lines, c.Damage(), nil
		}
		if err != nil {
			return lines, d, err
		}
		if e.Engine < 0 || e.Engine >= MaxEngines || !e.At.Plausible() {
			return lines, d, fmt.Errorf("a line of engine %d at %d", e.Engine, e.At)
		}
		lines += len(e.Line)
	}
}

func hostile(t testing.TB) map[string][]byte {
	zeros := strings.Repeat("\x00", maxFrame)
	return map[string][]byte{
		"zeros that fill frames":    segmentOf(t, zeros, zeros, zeros),
		"lines that are empty":      segmentOf(t, strings.Repeat("\n", maxFrame/8)),
		"a frame that is empty":     segmentOf(t, "", "\n"),
		"a line that is cut":        segmentOf(t, `{"at":`, `{"at":5`, `{"at":5,`, `{"at":5,"from":`, `{"at":5,"from":1`),
		"a note that is not JSON":   segmentOf(t, `{"recording":"`),
		"a note of an unknown type": segmentOf(t, `{"recording":"dream","at":5}`),
		"drops of unknown kinds":    segmentOf(t, `{"recording":"dropped","at":5,"dropped":{"dream":3,"token":1}}`),
		"engines beyond the limit": segmentOf(t, `{"recording":"engine","engine":4095,"name":"the last"}
{"recording":"engine","engine":4096,"name":"one more"}
{"recording":"engine","engine":-1,"name":"none"}
`, `{"at":5,"from":4096,"t":"log","a":5,"m":"a"}
{"at":5,"from":-1,"t":"log","a":5,"m":"a"}
{"at":5,"from":99999999999999999999,"t":"log","a":5,"m":"a"}
`),
	}
}

// TestHostileFilesTakeLittleMemory reads small files that declare large sizes or decompress to much data.
func TestHostileFilesTakeLittleMemory(t *testing.T) {
	eventtest.SkipUnderRace(t)
	cases := hostile(t)
	good := segmentOf(t, strings.Repeat("x", 1000))
	claim := bytes.Clone(good) // of 2 bytes less 256, as the format stores it
	copy(claim[bytes.LastIndex(claim, magic)+5:], "\xff\xff")
	cases["a frame that claims more than it has"] = claim
	cases["a frame longer than its file"] = append(bytes.Clone(good), append(magic, 0xa4, 0, 0, 0, 1, 0xfc, 0xff, 0x0f)...)
	for name, file := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := walk(file)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 6*maxFrame {
			t.Errorf("%s: reading %d bytes allocated %d", name, len(file), took)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDropsOfUnknownKindsAreCounted(t *testing.T) {
	file := hostile(t)["drops of unknown kinds"]
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
	good := taped(f, session(), event.MaxTime)
	f.Add(good)
	f.Add(append(good, good...))
	f.Add(good[:len(good)-1])
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<16 {
			t.Skip("larger files find nothing new")
		}
		_, _, _ = walk(file)
	})
}

// FuzzLines reads arbitrary lines, since random changes to a file do not pass its checksums.
func FuzzLines(f *testing.F) {
	var b block
	for i, e := range session() {
		if err := b.add(&catchup.Entry{Event: e, Arrived: event.Time(i), Engine: i % 3}); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(string(b.lines))
	f.Add(`{"recording":"end","at":7,"events":3,"dropped":{"token":2},"reason":"closed"}`)
	f.Add(`{"recording":"state","at":-1}` + "\n" + `{"at":9,"from":4095,"t":"log","a":5,"m":"a"}`)
	f.Fuzz(func(t *testing.T, lines string) {
		if len(lines) > 1<<16 {
			t.Skip("longer ones find nothing new")
		}
		if n, d, err := walk(segmentOf(t, lines)); err != nil || n > len(lines) || d.Bytes+d.Torn > 0 || d.Frames > 0 {
			t.Fatalf("%d bytes of lines in %d bytes, damage %+v, %v", n, len(lines), d, err)
		}
	})
}
