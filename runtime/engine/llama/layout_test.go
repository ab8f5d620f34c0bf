//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// defaults returns structs with the defaults of a layout, followed by zeros.
func (l *layout) defaults() (model, context block) {
	model, context = make(block, l.model.size+slack), make(block, l.context.size+slack)
	for _, k := range l.modelDefaults {
		model.setInt32(k.at, k.want)
	}
	for _, k := range l.contextDefaults {
		context.setInt32(k.at, k.want)
	}
	return model, context
}

// TestGuard changes each listed default, and the bytes after the structs.
func TestGuard(t *testing.T) {
	for i := range layouts {
		l := &layouts[i]
		r := l.releases[0]
		model, context := l.defaults()
		if err := l.guard(r, model, context); err != nil {
			t.Fatalf("%v: its own defaults: %v", r, err)
		}
		for _, k := range l.modelDefaults {
			odd := slices.Clone(model)
			odd.setInt32(k.at, k.want+7)
			wantGuarded(t, l.guard(r, odd, context), fmt.Sprintf("llama_model_params is not that of %v: the default of %s is %d, want %d", r, k.name, k.want+7, k.want))
		}
		for _, k := range l.contextDefaults {
			odd := slices.Clone(context)
			odd.setInt32(k.at, k.want+7)
			wantGuarded(t, l.guard(r, model, odd), "llama_context_params is not that of "+r.String()+": the default of "+k.name)
		}
		longer := slices.Clone(context)
		longer[l.context.size+3] = 9
		wantGuarded(t, l.guard(r, model, longer), fmt.Sprintf("it is longer than %d bytes", l.context.size))
	}
}

func wantGuarded(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line with %q", err, want)
	}
}

// TestLayoutsAreWhole: every field that is written lies within its struct, and does not overlap others.
func TestLayoutsAreWhole(t *testing.T) {
	for _, l := range layouts {
		for _, at := range []int{l.model.gpuLayers, l.model.loadMode, l.model.progress, l.model.noAlloc} {
			if at <= 0 || at >= l.model.size {
				t.Errorf("%v: a field of the model's parameters at %d of %d", l.releases, at, l.model.size)
			}
		}
		c := l.context
		for _, at := range []int{c.batch, c.ubatch, c.sequences, c.outputs, c.threads, c.threadsBatch, c.eval, c.evalData, c.unified} {
			if at <= 0 || at >= c.size {
				t.Errorf("%v: a field of the context's parameters at %d of %d", l.releases, at, c.size)
			}
		}
	}
}

// TestUnknownRelease expects the error to list the supported releases.
func TestUnknownRelease(t *testing.T) {
	for _, r := range []release{{"0.5.1", "0.25.1"}, {"0.5.0", "0.26.0"}, {"unknown", "unknown"}} {
		_, err := layoutOf(r)
		wantGuarded(t, err, "version "+r.String()+" is not supported; supported are ")
		for _, l := range layouts {
			for _, supported := range l.releases {
				wantGuarded(t, err, supported.String())
			}
		}
	}
	for _, r := range []release{{"0.5.0-dev", "0.25.1"}, {"0.4.0", "0.23.0-dev"}} { // as reported by builds from source
		if _, err := layoutOf(r); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
}

// TestShiftedLayout: a layout with one wrong offset does not match the defaults of a real library.
func TestShiftedLayout(t *testing.T) {
	l, err := open(libraries(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.layout.guard(l.release, l.modelDefaults, l.contextDefaults); err != nil {
		t.Fatal(err)
	}
	shifted := *l.layout
	shifted.contextDefaults = nil
	for _, k := range l.layout.contextDefaults {
		shifted.contextDefaults = append(shifted.contextDefaults, fieldDefault{k.name, k.at + 4, k.want})
	}
	wantGuarded(t, shifted.guard(l.release, l.modelDefaults, l.contextDefaults), "llama_context_params is not that of ")
	shorter := *l.layout
	shorter.model.size = l.layout.model.size - 8
	wantGuarded(t, shorter.guard(l.release, l.modelDefaults, l.contextDefaults), "it is longer than")
}
