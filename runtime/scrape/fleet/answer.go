package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxSeries bounds the series of one answer: 2,500 replicas with 160 series each, of which one takes some 300 bytes.
const maxSeries = 400_000

// Sample is one series of an instant vector.
type Sample struct {
	Metric map[string]string // labels, the name among them
	At     float64           // s since 1970, when the query was evaluated
	Value  float64
}

var (
	errNone = errors.New("answers what Prometheus does not")
	errMany = fmt.Errorf("answers more than %d series: choose fewer targets with --match", maxSeries)
)

// decode reads the answer to an instant query and hands out its samples one by one; those that are no numbers are left out. Errors: what is
// not such an answer; what Prometheus says is wrong; too many series; that of r.
func decode(r io.Reader, each func(*Sample)) error {
	in := answer{Decoder: json.NewDecoder(r), each: each}
	err := in.object(func(key string) error {
		switch key {
		case "status":
			return in.Decode(&in.status)
		case "error":
			return in.Decode(&in.why)
		case "data":
			return in.object(in.data)
		}
		return in.skip()
	})
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, io.EOF):
		return errNone
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("broke off in the middle of an answer")
	case err != nil:
		return err
	case in.status == "error":
		return errors.New("refuses the query: " + clip(in.why))
	case in.status != "success" || !in.seen:
		return errNone
	}
	return nil
}

// clip is the beginning of what a server says, in one line.
func clip(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text[:min(len(text), 200)], "")
}

// answer is an answer that is being read.
type answer struct {
	*json.Decoder
	status, why string
	seen        bool // a vector has come
	each        func(*Sample)
}

// object reads an object, each of whose values is read by member.
func (a *answer) object(member func(key string) error) error {
	if err := a.delim('{'); err != nil {
		return err
	}
	for a.More() {
		t, err := a.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if err := member(key); err != nil {
			return err
		}
	}
	return a.delim('}')
}

func (a *answer) delim(want json.Delim) error {
	t, err := a.Token()
	if err == nil && t != want {
		err = errNone
	}
	return err
}

func (a *answer) skip() error {
	var none json.RawMessage
	return a.Decode(&none)
}

func (a *answer) data(key string) error {
	switch key {
	case "resultType":
		var kind string
		if err := a.Decode(&kind); err != nil {
			return err
		}
		if kind != "vector" {
			return errNone
		}
	case "result":
		return a.vector()
	default:
		return a.skip()
	}
	return nil
}

// vector reads the samples.
func (a *answer) vector() error {
	if err := a.delim('['); err != nil {
		return err
	}
	for n := 0; a.More(); n++ {
		if n == maxSeries {
			return errMany
		}
		var one struct {
			Metric map[string]string `json:"metric"`
			Value  point             `json:"value"`
		}
		if err := a.Decode(&one); err != nil {
			return err
		}
		if !math.IsNaN(one.Value.v) && !math.IsInf(one.Value.v, 0) {
			a.each(&Sample{one.Metric, one.Value.at, one.Value.v})
		}
	}
	a.seen = true
	return a.delim(']')
}

// point is the time and the value of a sample: [1700000000.123, "42"].
type point struct{ at, v float64 }

// UnmarshalJSON implements json.Unmarshaler. What is no number is NaN.
func (p *point) UnmarshalJSON(raw []byte) error {
	p.v = math.NaN()
	at, value, ok := strings.Cut(strings.Trim(string(raw), "[] \t\r\n"), ",")
	if !ok {
		return errNone
	}
	var err error
	if p.at, err = strconv.ParseFloat(strings.TrimSpace(at), 64); err != nil || math.IsNaN(p.at) || math.Abs(p.at) > 1e12 {
		return errNone
	}
	if v, err := strconv.ParseFloat(strings.Trim(strings.TrimSpace(value), `"`), 64); err == nil {
		p.v = v
	}
	return nil
}

// line is a sample of a replica on its way into the text that its gatherer reads.
type line struct {
	name, labels, le string
	bound            float64
	value            float64
}

// lineOf takes the labels of a sample apart: those of the target are the same for all of the replica, and left out.
func lineOf(s *Sample, words interned) line {
	l := line{name: words.of(s.Metric["__name__"]), le: words.of(s.Metric["le"]), value: s.Value}
	if l.le != "" {
		bound, err := strconv.ParseFloat(l.le, 64)
		if err != nil {
			bound = math.NaN()
		}
		l.bound = bound
	}
	names := make([]string, 0, len(s.Metric))
	for name := range s.Metric {
		switch name {
		case "__name__", "le", "job", "instance":
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name)
		b.WriteString(`="`)
		_, _ = escape.WriteString(&b, s.Metric[name])
		b.WriteString(`",`)
	}
	l.labels = words.of(b.String())
	return l
}

// interned are words of which each is kept once: replicas have the same metrics.
type interned map[string]string

func (i interned) of(word string) string {
	if known, ok := i[word]; ok {
		return known
	}
	i[word] = word
	return word
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
