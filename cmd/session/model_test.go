//go:build linux

package session

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestModelIsCompleted: what an engine does not say of its model is read from the file that it names, once its process is
// known. What it says stays, and a file that contradicts it is not used.
func TestModelIsCompleted(t *testing.T) {
	data, err := os.ReadFile("../../runtime/engine/native/demo/llmtop-demo-moe-q8_0.gguf")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	var got eventtest.Log
	r := &modelReader{processes: func() []int { return []int{c.Process.Pid} }, due: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, event.Tee{&got, r}) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	sample := event.Event{Kind: event.KindHost, Data: &event.Host{}}
	for _, said := range []event.Model{{Name: "mine", Path: file, Quantisation: "own"}, {Name: "other", Path: file, Layers: 3}, {Name: "lost", Path: file + "x"}} {
		before := len(got.All())
		e := event.Event{Kind: event.KindModel, At: 7, Dur: 5, Data: &said}
		r.Emit(e)
		eventtest.Wait(t, "an answer about "+said.Name, func() bool { r.Emit(sample); return len(got.All()) > before })
		all := got.All()
		switch m, is := all[before].Data.(*event.Model); {
		case said.Name == "mine" && (!is || m.Layers != 8 || m.Parameters != 11038400 || m.Quantisation != "own" || m.Name != "mine" || all[before].At != 7 || all[before].Dur != 5):
			t.Errorf("%+v", all[before])
		case said.Name != "mine" && (is || !strings.HasPrefix(all[before].Text, "model file not used: ")):
			t.Errorf("%s: %+v", said.Name, all[before])
		}
	}
}
