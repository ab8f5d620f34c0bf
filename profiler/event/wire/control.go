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
	Call       uint64 // number that the reply repeats
	Token      string
	Generation Generation
	Req        event.RequestID
	On         Measure
	Every      int // at least 1
}

// Generation requests a completion of Prompt or IDs. Zero values select the engine's defaults.
type Generation struct {
	Prompt string
	IDs    []int32
	Special, IgnoreEOS, Probe,
	Text, Picks bool
	Group, Label                           string
	MaxTokens, Top, TopK                   int
	Temperature, TopP, MinP, RepeatPenalty float64
	Seed                                   uint64
}

// Measure selects what an engine measures.
type Measure struct{ Stages, Experts, Picks bool }

// measures are the fields of Measure by name.
var measures = []struct {
	name string
	get  func(*Measure) *bool
}{
	{"stages", func(m *Measure) *bool { return &m.Stages }},
	{"experts", func(m *Measure) *bool { return &m.Experts }},
	{"picks", func(m *Measure) *bool { return &m.Picks }},
}

var generationFields = fields[Generation]{
	{"prompt", appendPrompt, func(d *Decoder, g *Generation) { g.Prompt = string(d.text(nil, MaxControl)) }},
	{"ids", appendIDs, readIDs},
	member("max", integers, func(g *Generation) *int { return &g.MaxTokens }),
	member("top", integers, func(g *Generation) *int { return &g.Top }),
	member("top_k", integers, func(g *Generation) *int { return &g.TopK }),
	member("temperature", floats, func(g *Generation) *float64 { return &g.Temperature }),
	member("top_p", floats, func(g *Generation) *float64 { return &g.TopP }),
	member("min_p", floats, func(g *Generation) *float64 { return &g.MinP }),
	member("repeat_penalty", floats, func(g *Generation) *float64 { return &g.RepeatPenalty }),
	member("special", flags, func(g *Generation) *bool { return &g.Special }),
	member("ignore_eos", flags, func(g *Generation) *bool { return &g.IgnoreEOS }),
	member("probe", flags, func(g *Generation) *bool { return &g.Probe }),
	member("text", flags, func(g *Generation) *bool { return &g.Text }),
	member("picks", flags, func(g *Generation) *bool { return &g.Picks }),
	member("seed", value[uint64]{identifier, (*Decoder).identifier}, func(g *Generation) *uint64 { return &g.Seed }),
	member("group", texts, func(g *Generation) *string { return &g.Group }),
	member("label", texts, func(g *Generation) *string { return &g.Label }),
}

// Negative numbers are written as they are, for the engine to refuse or to clamp.
var (
	integers = value[int]{number[int], readSize}
	floats   = value[float64]{
		func(dst []byte, name string, v float64) []byte {
			if v == 0 {
				return dst
			}
			return appendFloat(key(dst, name), v, 64)
		},
		(*Decoder).positive,
	}
)

func appendPrompt(dst []byte, g *Generation) []byte {
	if g.Prompt == "" {
		return dst
	}
	return appendUncutText(key(dst, "prompt"), g.Prompt)
}

func appendIDs(dst []byte, g *Generation) []byte {
	if len(g.IDs) == 0 {
		return dst
	}
	return appendArray(key(dst, "ids"), g.IDs, func(dst []byte, id int32) []byte { return strconv.AppendInt(dst, int64(id), 10) })
}

func readIDs(d *Decoder, g *Generation) {
	g.IDs = nil
	for range d.elements() {
		g.IDs = append(g.IDs, d.int32())
	}
}

// AppendControl appends a message as one line without its end. It returns an error if the line exceeds MaxControl.
func AppendControl(dst []byte, c *Control) ([]byte, error) {
	from := len(dst)
	out := word(append(dst, '{'), "t", c.Type.String())
	if c.Type == Login {
		return append(word(out, "token", c.Token), '}'), nil
	}
	out = strconv.AppendUint(key(out, "c"), c.Call, 10)
	switch c.Type {
	case Generate:
		out = generationFields.append(out, &c.Generation)
	case Cancel:
		out = strconv.AppendUint(key(out, "r"), uint64(c.Req), 10)
	case Hooks:
		out = append(key(out, "on"), '[')
		for _, m := range measures {
			if *m.get(&c.On) {
				if out[len(out)-1] != '[' {
					out = append(out, ',')
				}
				out = appendString(out, m.name)
			}
		}
		out = append(out, ']')
	case Sample:
		out = number(out, "every", max(c.Every, 1))
	}
	out = append(out, '}')
	if n := len(out) - from; n > MaxControl {
		return dst, fmt.Errorf("write %v message: %d bytes exceed the limit of %d", c.Type, n, MaxControl)
	}
	return out, nil
}

// DecodeControl decodes a reader's line. Error: ErrMalformed, also for an unknown type.
func (d *Decoder) DecodeControl(line []byte) (Control, error) {
	var c Control
	if len(line) > MaxControl {
		return c, fmt.Errorf("%w: %d bytes long", ErrMalformed, len(line))
	}
	s := &d.scan
	s.reset(line)
	if !d.begin() {
		return c, s.err()
	}
	i := slices.IndexFunc(controlNames[:], func(name string) bool { return name == string(d.lineType) })
	if i <= 0 {
		s.fail("unknown message")
		return c, s.err()
	}
	c.Type, c.Every = ControlType(i), 1
	generationFields.members(d, &c.Generation, func(name []byte) bool {
		switch string(name) {
		case "c":
			c.Call = d.identifier()
		case "token":
			c.Token = d.string()
		case "r":
			c.Req = event.RequestID(d.identifier())
		case "every":
			c.Every = max(int(d.int32()), 1)
		case "on":
			c.On = readMeasure(d)
		default:
			return false
		}
		return true
	})
	if s.problem == "" && s.at < len(line) && s.peek() != 0 {
		s.fail("more than one value")
	}
	return c, s.err()
}

func readMeasure(d *Decoder) (m Measure) {
	for range d.elements() {
		name := d.scan.str()
		for _, part := range measures {
			if part.name == string(name) {
				*part.get(&m) = true
			}
		}
	}
	return m
}
