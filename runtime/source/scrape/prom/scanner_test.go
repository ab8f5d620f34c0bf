package prom

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// all lists the samples of a text, one per line.
func all(s *Scanner) string {
	var b strings.Builder
	for s.Next() {
		v, ok := s.Value()
		fmt.Fprintf(&b, "%s|%s|%v %v\n", s.Name(), s.Labels(), v, ok)
	}
	return b.String()
}

func TestSamples(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"a 1\n", "a||1 true\n"},
		{"a 1", "a||1 true\n"},
		{"  a\t1\r\n", "a||1 true\n"},
		{"# HELP a b\n# TYPE a counter\na 1.5 1700000000\n# EOF\n", "a||1.5 true\n"},
		{`a{x="1",y="2"} 3`, "a|x=\"1\",y=\"2\"|3 true\n"},
		{`a{x="}\"{,"} 3`, "a|x=\"}\\\"{,\"|3 true\n"},
		{`a{x="\\"} 3`, "a|x=\"\\\\\"|3 true\n"},
		{`vllm:x_bucket{le="+Inf"} 7 # {trace_id="b"} 0.5`, "vllm:x_bucket|le=\"+Inf\"|7 true\n"},
		{"a NaN\nb +Inf\nc -Inf\nd 1e3\ne -2.5\n", "a||0 false\nb||0 false\nc||0 false\nd||1000 true\ne||-2.5 true\n"},
		{"a 1e18\nb 1.1e18\nc -1.7e308\nd 1e999\n", "a||1e+18 true\nb||0 false\nc||0 false\nd||0 false\n"},
		{"a x\nb 0x10\nc 1_0\nd \n", "a||0 false\nb||0 false\nc||0 false\n"},
		{"<html>\n\na{ 1\nb{x=\"1} 2\n{} 3\na 1\n", "a||1 true\n"},
		{`a{x="1"y="2", } 1` + "\na{x=\"1\",le=\"+\"I,le=\"9\"} 2\na{x=1} 3\na{x=\"1\";} 4\n", "a|x=\"1\"y=\"2\", |1 true\n"},
		{"a 1\n" + strings.Repeat("x", 3*MaxLine) + "\nb 2\n", "a||1 true\nb||2 true\n"},
		{"a 1\n" + strings.Repeat("x", 3*MaxLine), "a||1 true\n"},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.text), "by bytes": iotest.OneByteReader(strings.NewReader(c.text)), "with its end": iotest.DataErrReader(strings.NewReader(c.text)),
		} {
			s := NewScanner(r)
			if got := all(s); got != c.want || s.Err() != nil {
				t.Errorf("%s, %.60q: %q, %v; want %q", name, c.text, got, s.Err(), c.want)
			}
		}
	}
}

// Implausible values count as malformed. NaN does not: it is the value of a summary without samples.
func TestImplausibleValuesAreCounted(t *testing.T) {
	s := NewScanner(strings.NewReader("a NaN\nb +Inf\nc 1.7e308\nd 2\n"))
	all(s)
	if s.Malformed() != 2 {
		t.Errorf("%d malformed lines, want 2", s.Malformed())
	}
	for le, want := range map[string]bool{"0.5": true, "+Inf": true, "-Inf": false, "NaN": false, "1.7e308": false} {
		if _, ok := ParseBound([]byte(le)); ok != want {
			t.Errorf("bound %q: %v, want %v", le, ok, want)
		}
	}
}

func TestTruncatedText(t *testing.T) {
	broken := errors.New("broken")
	s := NewScanner(io.MultiReader(strings.NewReader("a 1\nb 12"), iotest.ErrReader(broken)))
	if got := all(s); got != "a||1 true\n" || !errors.Is(s.Err(), broken) {
		t.Errorf("%q, %v: b may have been 123", got, s.Err())
	}
	s.Reset(iotest.TimeoutReader(strings.NewReader("c 3\n")))
	if got := all(s); got != "c||3 true\n" || s.Err() == nil {
		t.Errorf("after a reset %q, %v", got, s.Err())
	}
}

func TestLabels(t *testing.T) {
	l := Labels(`model_name="a\"b\\c\nd",le="0.5", engine="0"`)
	if got := l.Get("model_name"); got != "a\"b\\c\nd" {
		t.Errorf("model_name is %q", got)
	}
	key, le := l.Key()
	if v, ok := ParseBound(le); v != 0.5 || !ok {
		t.Errorf("le is %v, %v", v, ok)
	}
	for text, want := range map[string]string{string(l): "", `engine="0",le="0.5"`: "0.5", `le="+Inf",`: "+Inf", `x="a,le=5"`: "", `file="5"`: "", `le="5`: ""} {
		if _, le := Labels(text).CutBound(); string(le) != want {
			t.Errorf("the last label of %s is the bound %q, want %q", text, le, want)
		}
	}
	if l.Raw("name") != nil || l.Get("x") != "" {
		t.Error("found labels that do not exist")
	}
	if v, ok := ParseBound([]byte("+Inf")); !math.IsInf(v, 1) || !ok {
		t.Errorf("+Inf is %v, %v", v, ok)
	}
	if same, _ := Labels(`engine="0",model_name="a\"b\\c\nd",le="9"`).Key(); same != key {
		t.Error("the key depends on the order of labels, or on le")
	}
	for _, other := range []string{`engine="1",model_name="a\"b\\c\nd"`, `model_name="0",engine="a\"b\\c\nd"`} {
		if k, le := Labels(other).Key(); k == key || le != nil {
			t.Errorf("the key of %s is the same", other)
		}
	}
}

// TestSamplesMatchPrometheus compares with Prometheus' own parser.
func TestSamplesMatchPrometheus(t *testing.T) {
	for _, name := range []string{"vllm", "sglang", "tensorrt", "llamacpp", "llamacpp_old", "dynamo"} {
		text, err := os.ReadFile("../gather/testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, sum := 0, 0.0
		for _, f := range families {
			for _, m := range f.Metric {
				want++
				switch {
				case m.Counter != nil:
					sum += m.Counter.GetValue()
				case m.Gauge != nil:
					sum += m.Gauge.GetValue()
				case m.Untyped != nil:
					sum += m.Untyped.GetValue()
				case m.Histogram != nil:
					want += len(m.Histogram.Bucket) + 1
					sum += m.Histogram.GetSampleSum() + float64(m.Histogram.GetSampleCount())
					for _, b := range m.Histogram.Bucket {
						sum += float64(b.GetCumulativeCount())
					}
				}
			}
		}
		s, got := NewScanner(bytes.NewReader(text)), 0.0
		for s.Next() {
			v, _ := s.Value()
			got += v
		}
		if s.Samples() != want || math.Abs(got-sum) > 1e-6*sum || s.Malformed() != 0 {
			t.Errorf("%s: %d samples with sum %v, %d malformed; want %d and %v", name, s.Samples(), got, s.Malformed(), want, sum)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, seed := range []string{"a 1\n", `a{x="1",le="+Inf"} 3 4`, "a{x=\"\\\"}", "# TYPE\n", "a{", "a\n{} 1", "a 0x1p-2\nb 00.1\n", "\x00 1", "a{le=\"+\"I,le=\"9\"} 2"} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, chunk int) {
		whole := NewScanner(bytes.NewReader(text))
		want := all(whole)
		parts := NewScanner(iotest.HalfReader(bytes.NewReader(text)))
		if got := all(parts); got != want {
			t.Errorf("%q read in parts gives %q, as a whole %q", text, got, want)
		}
		s := NewScanner(bytes.NewReader(text))
		for s.Next() {
			l := s.Labels()
			_, le := l.Key()
			ParseBound(le)
			if before, last := l.CutBound(); last != nil && (le == nil || !bytes.Equal(last, le) || !bytes.HasPrefix(l, before)) {
				t.Errorf("the bound of %q is %q, or %q", l, le, last)
			}
			_ = l.Get("model_name")
		}
	})
}

// BenchmarkScan reads all values of a text of 64 KiB.
func BenchmarkScan(b *testing.B) {
	text := text64(b)
	s := NewScanner(nil)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(bytes.NewReader(text))
		n := 0
		for s.Next() {
			if _, ok := s.Value(); ok {
				n++
			}
		}
		if n < 300 {
			b.Fatal(n)
		}
	}
}

// text64 returns 64 KiB of metrics of two vLLM engines.
func text64(b *testing.B) []byte {
	b.Helper()
	one, err := os.ReadFile("../gather/testdata/vllm.txt")
	if err != nil {
		b.Fatal(err)
	}
	text := one
	for i := 1; len(text) < 64<<10; i++ {
		text = append(text, bytes.ReplaceAll(one, []byte(`engine="0"`), fmt.Appendf(nil, `engine="%d"`, i))...)
	}
	return text[:bytes.LastIndexByte(text[:64<<10], '\n')+1]
}
