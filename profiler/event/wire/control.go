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

// measures are the names of the fields of Measure.
var measures = []string{"stages", "experts", "picks"}

func (m *Measure) parts() []*bool { return []*bool{&m.Stages, &m.Experts, &m.Picks} }

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
		out = appendGeneration(out, &c.Generation)
	case Cancel:
		out = strconv.AppendUint(key(out, "r"), uint64(c.Req), 10)
	case Hooks:
		out = append(key(out, "on"), '[')
		for i, on := range c.On.parts() {
			if *on {
				if out[len(out)-1] != '[' {
					out = append(out, ',')
				}
				out = appendString(out, measures[i])
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

func appendGeneration(dst []byte, g *Generation) []byte {
	if g.Prompt != "" {
		dst = appendUncutText(key(dst, "prompt"), g.Prompt)
	}
	if len(g.IDs) > 0 {
		dst = append(key(dst, "ids"), '[')
		for i, id := range g.IDs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, int64(id), 10)
		}
		dst = append(dst, ']')
	}
	for i, n := range g.numbers() {
		dst = number(dst, generationNumbers[i], *n)
	}
	for i, f := range g.floats() {
		if *f != 0 {
			dst = appendFloat(key(dst, generationFloats[i]), *f, 64)
		}
	}
	for i, f := range g.flags() {
		dst = flag(dst, generationFlags[i], *f)
	}
	if g.Seed != 0 {
		dst = strconv.AppendUint(key(dst, "seed"), g.Seed, 10)
	}
	return word(word(dst, "group", g.Group), "label", g.Label)
}

// The names of a Generation's members, in the order of the methods below.
var (
	generationNumbers = []string{"max", "top", "top_k"}
	generationFloats  = []string{"temperature", "top_p", "min_p", "repeat_penalty"}
	generationFlags   = []string{"special", "ignore_eos", "probe", "text", "picks"}
)

func (g *Generation) numbers() []*int { return []*int{&g.MaxTokens, &g.Top, &g.TopK} }

func (g *Generation) floats() []*float64 {
	return []*float64{&g.Temperature, &g.TopP, &g.MinP, &g.RepeatPenalty}
}

func (g *Generation) flags() []*bool {
	return []*bool{&g.Special, &g.IgnoreEOS, &g.Probe, &g.Text, &g.Picks}
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
	d.members(func(name []byte) bool { return d.controlMember(&c, name) })
	if s.problem == "" && s.at < len(line) && s.peek() != 0 {
		s.fail("more than one value")
	}
	return c, s.err()
}

func (d *Decoder) controlMember(c *Control, name []byte) bool {
	s, g := &d.scan, &c.Generation
	switch string(name) {
	case "c":
		c.Call, _ = s.unsigned()
	case "token":
		c.Token = d.string()
	case "r":
		v, _ := s.unsigned()
		c.Req = event.RequestID(v)
	case "every":
		c.Every = max(int(d.int32()), 1)
	case "on":
		d.readMeasure(&c.On)
	case "prompt":
		g.Prompt = string(d.text(nil, MaxControl))
	case "ids":
		g.IDs = d.readIDs()
	case "seed":
		g.Seed, _ = s.unsigned()
	case "group":
		g.Group = d.string()
	case "label":
		g.Label = d.string()
	default:
		return d.generationMember(g, name)
	}
	return true
}

// generationMember reads a number or flag of a generation.
func (d *Decoder) generationMember(g *Generation, name []byte) bool {
	is := func(n string) bool { return n == string(name) }
	if i := slices.IndexFunc(generationNumbers, is); i >= 0 {
		*g.numbers()[i] = int(d.int32())
		return true
	}
	if i := slices.IndexFunc(generationFloats, is); i >= 0 {
		*g.floats()[i] = max(d.bareReading(event.Reported).V, 0)
		return true
	}
	i := slices.IndexFunc(generationFlags, is)
	if i >= 0 {
		*g.flags()[i] = d.scan.boolean()
	}
	return i >= 0
}

func (d *Decoder) readMeasure(m *Measure) {
	*m = Measure{}
	if !d.scan.open('[') {
		return
	}
	for d.scan.more(']') {
		word := d.scan.str()
		if i := slices.IndexFunc(measures, func(n string) bool { return n == string(word) }); i >= 0 {
			*m.parts()[i] = true
		}
	}
}

func (d *Decoder) readIDs() (ids []int32) {
	if d.scan.open('[') {
		for d.scan.more(']') {
			ids = append(ids, d.int32())
		}
	}
	return ids
}
