//go:build !linux || !(amd64 || arm64)

package probe

import (
	"context"
	"fmt"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// errUnsupported is the error of everything here.
var errUnsupported = fmt.Errorf("%w: probes need Linux on amd64 or arm64", ErrAbsent)

// Probe watches a process.
type Probe struct{}

// Inspect returns an error on this system.
func Inspect(int) (*Target, error) { return nil, errUnsupported }

// InspectCUDA returns an error on this system.
func InspectCUDA(int) (*Target, error) { return nil, errUnsupported }

// Permitted returns an error on this system.
func Permitted() error { return errUnsupported }

// Open returns an error on this system.
func Open(*Target, engine.Clock, engine.Hooks) (*Probe, error) { return nil, errUnsupported }

// Toggle returns an error on this system.
func Toggle(io.Reader, io.Writer, []string) error { return errUnsupported }

// Run implements engine.Source.
func (*Probe) Run(context.Context, event.Sink) error { return errUnsupported }

// In returns the sink.
func (*Probe) In(sink event.Sink) event.Sink { return sink }

// CallsOnly returns false.
func (*Probe) CallsOnly() bool { return false }

// PID returns 0.
func (*Probe) PID() int { return 0 }

// Model returns "".
func (*Probe) Model() string { return "" }

// Close does nothing.
func (*Probe) Close() error { return nil }
