package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// args are the arguments of a slice: what the viewer shows of it when it is selected.
type args map[string]any

// set adds a reading unless it is absent.
func (a args) set(name string, r event.Reading) {
	if r.OK() {
		a[name] = r.V
	}
}

// seconds adds a duration in ns, unless it is 0.
func (a args) seconds(name string, ns int64) {
	if ns != 0 {
		a[name] = float64(ns) / 1e9
	}
}

// record is one entry of the Chrome trace format. Times are in whole µs, so that slices nest exactly.
type record struct {
	Name     string `json:"name"`
	Category string `json:"cat,omitempty"`
	Phase    string `json:"ph"` // X: slice, C: counter, M: name of a track
	TS       int64  `json:"ts"`
	Dur      *int64 `json:"dur,omitempty"`
	PID      int    `json:"pid"`
	TID      int    `json:"tid"`
	Args     args   `json:"args,omitempty"`
}

// writer writes records.
type writer struct {
	out   *bufio.Writer
	json  *json.Encoder
	err   error
	begun bool
	pid   int
	tid   int // of the last track
}

func (w *writer) record(r record) {
	if w.err != nil {
		return
	}
	if w.begun {
		_ = w.out.WriteByte(',') // Flush returns its error
	}
	w.begun = true
	r.PID = w.pid
	w.err = w.json.Encode(r)
}

// micros converts a time to µs.
func micros(at event.Time) int64 { return int64(at) / int64(time.Microsecond) }

// slice writes a slice. It must lie within the slices of the same track that it overlaps.
func (w *writer) slice(track int, category, name string, start, end event.Time, a args) {
	dur := max(micros(end)-micros(start), 0)
	w.record(record{Name: name, Category: category, Phase: "X", TS: micros(start), Dur: &dur, TID: track, Args: a})
}

// count writes the values of a counter from a time on.
func (w *writer) count(name string, at event.Time, values args) {
	w.record(record{Name: name, Phase: "C", TS: micros(at), Args: values})
}

// name names the process (track 0) or one of its tracks, which are shown in order.
func (w *writer) name(kind string, track int, name string) {
	w.record(record{Name: kind + "_name", Phase: "M", TID: track, Args: args{"name": name}})
	if kind == "thread" {
		w.record(record{Name: "thread_sort_index", Phase: "M", TID: track, Args: args{"sort_index": track}})
	}
}

// tracks names tracks and returns their numbers. One of several gets a number.
func (w *writer) tracks(name string, n int) (ids []int) {
	for i := range n {
		w.tid++
		ids = append(ids, w.tid)
		if n > 1 {
			w.name("thread", w.tid, fmt.Sprintf("%s %d", name, i+1))
		} else {
			w.name("thread", w.tid, name)
		}
	}
	return ids
}
