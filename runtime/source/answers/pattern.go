package answers

import (
	"bytes"
	"reflect"
	"slices"
	"unicode/utf8"
)

// pattern is a message whose text may be any other. Most messages of a stream differ in nothing else, and to compare them
// costs a tenth of parsing them.
type pattern struct {
	before, after []byte  // what stands before the text, and after it; nil: no pattern is known
	hits, tries   int     // messages that fitted one, and messages in which one was looked for
	last          bool    // the last message fitted
	parts         [1]Part // of message
	part          Part    // as it is without text
	message       Message
}

// fits reports whether a value is the pattern with some text.
func (p *pattern) fits(value []byte) bool {
	return p.before != nil && len(value) > len(p.before)+len(p.after) && bytes.HasPrefix(value, p.before) && bytes.HasSuffix(value, p.after)
}

// enough is how many messages a pattern should fit. Where each message has its own time, none does.
const enough = 4

// read returns the message of a value that fits the pattern, valid until the next call; nil: it does not fit.
func (p *pattern) read(value []byte, texts bool) *Message {
	if !p.fits(value) {
		return nil
	}
	text := value[len(p.before) : len(value)-len(p.after)]
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			return nil
		}
	}
	if !utf8.Valid(text) {
		return nil
	}
	p.hits++
	part := &p.parts[0]
	*part = p.part
	if pieces := Pieces(string(text)); part.Reasoning > 0 {
		part.Reasoning = pieces
	} else {
		part.Answer = pieces
	}
	if part.keep = texts; texts {
		part.Text = string(text)
	}
	p.message.Parts, p.message.again, p.last = p.parts[:], p.last, true
	return &p.message
}

// learn makes a value the pattern, if it has one text: in copies with other texts, nothing else of the message changes.
func (p *pattern) learn(value []byte, d *Dialect) {
	if p.fits(value) || p.tries > enough && p.hits < p.tries*enough {
		return
	}
	p.tries++
	for _, name := range [...]string{`"content":`, `"text":`, `"reasoning_content":`, `"reasoning":`} {
		i := bytes.Index(value, []byte(name))
		if i < 1 || value[i-1] != '{' && value[i-1] != ',' && value[i-1] != ' ' || bytes.Count(value, []byte(name)) > 1 {
			continue
		}
		i += len(name)
		for i < len(value) && value[i] == ' ' {
			i++
		}
		if i == len(value) || value[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(value) && value[end] != '"' {
			if end++; value[end-1] == '\\' {
				end++
			}
		}
		if end >= len(value) {
			continue
		}
		before, after := value[:i+1], value[end:]
		one, first := withText(d, before, "x", after)
		two, second := withText(d, before, "x y", after)
		if one == nil || two == nil || !reflect.DeepEqual(*one, *two) || first.Answer+first.Reasoning != 1 ||
			second.Answer != 2*first.Answer || second.Reasoning != 2*first.Reasoning {
			continue
		}
		*p = pattern{before: bytes.Clone(before), after: bytes.Clone(after), message: *one, part: first, hits: p.hits, tries: p.tries}
		return
	}
}

// withText reads a value with a text in it: the message without its part, and that; nil: it has none of its own, or more
// than a text.
func withText(d *Dialect, before []byte, text string, after []byte) (*Message, Part) {
	m := new(Message)
	if d.read(m, slices.Concat(before, []byte(text), after)) != nil || m.Wrong != nil || m.Failed || m.Malformed > 0 ||
		len(m.Parts) != 1 || m.Parts[0].Tokens > 0 || m.Prompt+m.Generated > 0 || m.Routed != "" || m.Done || m.Why != "" {
		return nil, Part{}
	}
	part := m.Parts[0]
	m.Parts = nil
	return m, part
}
