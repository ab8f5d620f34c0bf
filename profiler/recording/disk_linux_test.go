package recording

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// spilled is a disk with a limited size; later writes go to a file on which the system reports that no space is left.
type spilled struct {
	output
	full *os.File
	room int64
}

func (d *spilled) WriteAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > d.room {
		return d.full.Write(b)
	}
	return d.output.WriteAt(b, off)
}

// TestSystemWithoutSpace checks that the system's error ends a recording, and that another recording of the same run,
// on another disk, continues.
func TestSystemWithoutSpace(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("a system without a device that is full: %v", err)
	}
	defer full.Close()
	bad := record(t, RecordOptions{Flush: time.Millisecond, first: func(o output) output { return &spilled{o, full, 20 << 10} }})
	good := record(t, RecordOptions{Flush: time.Millisecond})
	both, sent := event.Tee{bad.Recorder, good.Recorder}, uint64(0)
	emit := func(n int) {
		for range n {
			bad.now.Add(int64(time.Millisecond))
			good.now.Add(int64(time.Millisecond))
			both.Emit(event.Event{Kind: event.KindToken, Layer: -1, Req: 1, ID: int32(sent), N: 1, Index: int32(sent)})
			sent++
		}
	}
	for bad.Status().Err == nil {
		emit(50)
		time.Sleep(time.Millisecond)
	}
	emit(1000)
	if err := bad.Close(); !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the full disk: %v", err)
	}
	good.end(t)
	r, got, _ := read(t, bad.path)
	if s := bad.Status(); uint64(len(got)) != s.Events || s.Events+s.Dropped[event.KindToken] != sent || r.Damage() != (Damage{}) {
		t.Errorf("on the full disk: read %d, status %+v of %d, damage %+v", len(got), s, sent, r.Damage())
	}
	if _, got, _ := read(t, good.path); uint64(len(got)) != sent || good.Status().Dropped != (event.Drops{}) {
		t.Errorf("on the other disk: %d events of %d", len(got), sent)
	}
}
