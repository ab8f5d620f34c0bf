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

	"github.com/llmtop/llmtop/profiler/clean"
)

// maxSeries limits the series of a response: 2,500 replicas with 160 series each, of some 300 bytes.
const maxSeries = 400_000

// Sample is one series of an instant vector.
type Sample struct {
	Metric map[string]string // labels, including the name
	At     float64           // Unix time of the query in s
	Value  float64
}

var (
	errFormat        = errors.New("response is not a Prometheus query result")
	errTooManySeries = fmt.Errorf("more than %d series: select fewer targets with --match", maxSeries)
)

// decode decodes the response to an instant query and passes its samples to each. It skips samples that are not
// numbers. Errors: the response is not a query result; an error from Prometheus; too many series; those of r.
func decode(r io.Reader, each func(*Sample)) error {
	in := responseReader{Decoder: json.NewDecoder(r), each: each}
	err := in.object(func(key string) error {
		switch key {
		case "status":
			return in.Decode(&in.status)
		case "error":
			return in.Decode(&in.message)
		case "data":
			return in.object(in.data)
		}
		return in.skip()
	})
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, io.EOF):
		return errFormat
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("response truncated")
	case err != nil:
		return err
	case in.status == "error":
		return errors.New("query rejected: " + truncate(in.message))
	case in.status != "success" || !in.hasVector:
		return errFormat
	}
	return nil
}

// truncate returns the first line of a message, at most 200 characters.
func truncate(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return clean.Cut(text, 200)
}

// responseReader decodes a response.
type responseReader struct {
	*json.Decoder
	status, message string
	hasVector       bool // the response has a vector
	each            func(*Sample)
}

// object decodes an object. member decodes the value of each key.
func (a *responseReader) object(member func(key string) error) error {
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

func (a *responseReader) delim(want json.Delim) error {
	t, err := a.Token()
	if err == nil && t != want {
		err = errFormat
	}
	return err
}

func (a *responseReader) skip() error {
	var none json.RawMessage
	return a.Decode(&none)
}

func (a *responseReader) data(key string) error {
	switch key {
	case "resultType":
		var kind string
		if err := a.Decode(&kind); err != nil {
			return err
		}
		if kind != "vector" {
			return errFormat
		}
	case "result":
		return a.vector()
	default:
		return a.skip()
	}
	return nil
}

// vector decodes the samples.
func (a *responseReader) vector() error {
	if err := a.delim('['); err != nil {
		return err
	}
	for n := 0; a.More(); n++ {
		if n == maxSeries {
			return errTooManySeries
		}
		var sample struct {
			Metric map[string]string `json:"metric"`
			Value  json.RawMessage   `json:"value"`
		}
		if err := a.Decode(&sample); err != nil {
			return err
		}
		at, v, err := parsePoint(sample.Value)
		if err != nil {
			return err
		}
		if !math.IsNaN(v) {
			a.each(&Sample{sample.Metric, at, v})
		}
	}
	a.hasVector = true
	return a.delim(']')
}

// parsePoint parses the time and the value of a sample: [1700000000.123, "42"]. A value that is not a number becomes NaN.
func parsePoint(raw []byte) (at, v float64, err error) {
	time, value, ok := strings.Cut(strings.Trim(string(raw), "[] \t\r\n"), ",")
	if at, err = strconv.ParseFloat(strings.TrimSpace(time), 64); !ok || err != nil || math.IsNaN(at) || math.Abs(at) > 1e12 {
		return 0, 0, errFormat
	}
	if v, err = strconv.ParseFloat(strings.Trim(strings.TrimSpace(value), `"`), 64); err != nil {
		v = math.NaN()
	}
	return at, v, nil
}

// line is a sample in the form in which it is written to the metrics text.
type line struct {
	name, labels, le string
	bound            float64
	value            float64
}

// lineOf converts a sample. It omits the labels of its target, which are the same for all its samples, but for the model.
func lineOf(s *Sample, target map[string]string, strs map[string]string) line {
	l := line{name: intern(strs, s.Metric["__name__"]), le: intern(strs, s.Metric["le"]), value: s.Value}
	if l.le != "" {
		bound, err := strconv.ParseFloat(l.le, 64)
		if err != nil {
			bound = math.NaN()
		}
		l.bound = bound
	}
	l.labels = intern(strs, labelText(s.Metric, func(name string) bool {
		switch name {
		case "__name__", "le", "job", "instance":
			return true
		case "model", "model_name":
			return false
		}
		return s.Metric[name] == target[name]
	}))
	return l
}

// labelText returns the labels as they are in a metrics text, without some of them, in the order of their names.
func labelText(metric map[string]string, omit func(name string) bool) string {
	names := make([]string, 0, len(metric))
	for name := range metric {
		if !omit(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name)
		b.WriteString(`="`)
		_, _ = escape.WriteString(&b, metric[name])
		b.WriteString(`",`)
	}
	return b.String()
}

// intern returns the string that all equal ones share: replicas have the same names and labels.
func intern(words map[string]string, word string) string {
	if kept, ok := words[word]; ok {
		return kept
	}
	words[word] = word
	return word
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
