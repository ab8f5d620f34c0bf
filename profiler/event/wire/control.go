package wire

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// MaxControl is the maximum length in bytes of a reader's line, MaxToken that of one with a token.
const (
	MaxControl = 1 << 20 // 1 MiB
	MaxToken   = 1 << 10 // 1 KiB
)

// ControlType is the type of a reader's message.
type ControlType uint8

// The types of messages. The comments name the fields of Control that are used.
const (
	Login    ControlType = iota + 1 // Token: the response to Auth
	Generate                        // Generation
	Cancel                          // Req
	Pause
	Resume
	Hooks  // On
	Sample // Every
)

var controlNames = [...]string{"", "auth", "generate", "cancel", "pause", "resume", "hooks", "sample"}

// String returns the type as it is written in the line.
func (t ControlType) String() string {
	if int(t) < len(controlNames) {
		return controlNames[t]
	}
	return "unknown"
}

// Needs returns the capability that the engine must have.
func (t ControlType) Needs() event.Caps {
	return [...]event.Caps{
		Login: 0, Generate: event.CapPrompt, Cancel: event.CapCancel, Pause: event.CapPause, Resume: event.CapPause,
		Hooks: event.CapHooks, Sample: event.CapSample,
	}[t]
}

// Control is a message from a reader to an engine.
type Control struct {
	Type       ControlType
	Call       uint64          `wire:"c,id"` // number that the reply repeats
	Token      string          `wire:"token"`
	Generation                 // its zero values select the engine's defaults
	Req        event.RequestID `wire:"r"`
	On         Measure         `wire:"on"`
	Every      int             `wire:"every"` // at least 1
}

// Generation requests a completion of Prompt or IDs. Zero values select the engine's defaults.
type Generation struct {
	Prompt        string  `wire:"prompt,uncut"`
	IDs           []int32 `wire:"ids"`
	MaxTokens     int     `wire:"max"`
	Top           int     `wire:"top"`
	TopK          int     `wire:"top_k"`
	Temperature   float64 `wire:"temperature"`
	TopP          float64 `wire:"top_p"`
	MinP          float64 `wire:"min_p"`
	RepeatPenalty float64 `wire:"repeat_penalty"`
	Special       bool    `wire:"special"`
	IgnoreEOS     bool    `wire:"ignore_eos"`
	Probe         bool    `wire:"probe"`
	Text          bool    `wire:"text"`
	Picks         bool    `wire:"picks"`
	Seed          uint64  `wire:"seed,id"`
	Group         string  `wire:"group"`
	Label         string  `wire:"label"`
}

// Measure selects what an engine measures.
type Measure struct{ Stages, Experts, Picks bool }

// measures are the names of the parts of a Measure.
var measures = [...]string{"stages", "experts", "picks"}

func (m *Measure) parts() [len(measures)]*bool { return [...]*bool{&m.Stages, &m.Experts, &m.Picks} }

// AppendControl appends a message as one line without its end. It returns an error if the line exceeds MaxControl.
func AppendControl(dst []byte, c *Control) ([]byte, error) {
	from := len(dst)
	out := appendString(append(dst, `{"t":`...), c.Type.String())
	if c.Type == Login {
		return append(appendString(key(out, "token"), c.Token), '}'), nil
	}
	out = strconv.AppendUint(key(out, "c"), c.Call, 10)
	switch c.Type {
	case Generate:
		out = appendMembers(out, &c.Generation)
	case Cancel:
		out = strconv.AppendUint(key(out, "r"), uint64(c.Req), 10)
	case Hooks:
		on := c.On.parts()
		out = appendSet(key(out, "on"), measures[:], func(i int) bool { return *on[i] })
	case Sample:
		out = appendInt(key(out, "every"), int64(max(c.Every, 1)))
	}
	out = append(out, '}')
	if n := len(out) - from; n > MaxControl {
		return dst, fmt.Errorf("write %v message: %d bytes exceed the limit of %d", c.Type, n, MaxControl)
	}
	return out, nil
}

// DecodeControl decodes a reader's line. Error: ErrMalformed, also for an unknown type.
func (d *Decoder) DecodeControl(line []byte) (Control, error) {
	c := Control{Every: 1}
	err := d.decode(line, MaxControl, func() {
		if c.Type = ControlType(max(slices.Index(controlNames[:], string(d.lineType)), 0)); c.Type == 0 {
			d.scan.fail("unknown message")
		}
		d.readMembers(&c)
	})
	c.Every = max(c.Every, 1)
	return c, err
}
