package fleet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func vector(samples ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
}

func TestDecode(t *testing.T) {
	var got []Sample
	text := vector(
		`{"metric":{"__name__":"up","instance":"a:1","job":"j"},"value":[1700000000.5,"1"]}`,
		`{"metric":{"__name__":"up","instance":"b:1"},"value":[1700000000.5,"NaN"]}`,
		`{"value":[ 1700000000.5 , "+Inf" ],"metric":{}}`,
		`{"metric":{"__name__":"up","instance":"c\"\n:1"},"value":[1700000000.5,"1.5e3"]}`)
	text = strings.Replace(text, `"data"`, `"warnings":["w",{"x":[1]}],"data"`, 1)
	if err := decode(strings.NewReader(text), func(s *Sample) { got = append(got, *s) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].Metric["instance"] != "a:1" || got[0].Value != 1 || got[0].At != 1700000000.5 || got[2].Metric["instance"] != "c\"\n:1" || got[2].Value != 1500 {
		t.Errorf("%+v, want a with 1, what counts as malformed, and c with 1500", got)
	}
}

func TestDecodeErrors(t *testing.T) {
	for text, why := range map[string]string{
		"":                     "not a Prometheus query result",
		"<html>":               "not a Prometheus query result",
		"[]":                   "not a Prometheus query result",
		`{}`:                   "not a Prometheus query result",
		`{"status":"success"}`: "not a Prometheus query result",
		`{"status":"error","errorType":"execution","error":"query timed out\nat"}`:            "query rejected: query timed out",
		`{"status":"success","data":{"resultType":"matrix","result":[]}}`:                     "not a Prometheus query result",
		vector(`{"metric":{"a":1},"value":[1,"1"]}`):                                          "not a Prometheus query result",
		vector(`{"metric":{},"value":["x","1"]}`):                                             "not a Prometheus query result",
		vector(`{"metric":{},"value":[1e99,"1"]}`):                                            "not a Prometheus query result",
		strings.TrimSuffix(vector(`{"metric":{},"value":[1,"1"]}`), "]}}"):                    "",
		strings.TrimSuffix(vector(`{"metric":{"job":"x`), `]}}`):                              "",
		vector(strings.Repeat(`{"metric":{},"value":[1,"1"]},`, maxSeries) + `{"metric":{}}`): "more than",
	} {
		err := decode(strings.NewReader(text), func(*Sample) {})
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: error %v, want one with %q", text, err, why)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(vector(`{"metric":{"__name__":"vllm:x_bucket","le":"+Inf","a":"\"\n\\"},"value":[1700000000.1,"3"]}`))
	f.Add(`{"status":"error","error":"x"}`)
	f.Add(`{"data":{"result":[{"metric":{"le":"x"},"value":[1,2]}]},"status":"success"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var lines []line
		words := make(map[string]string)
		if decode(strings.NewReader(text), func(s *Sample) { lines = append(lines, lineOf(s, nil, words)) }) != nil {
			return
		}
		var out bytes.Buffer
		writeText(&out, lines)
		if n := strings.Count(out.String(), "\n"); n < len(lines) {
			t.Errorf("%d lines of %d samples", n, len(lines))
		}
	})
}

// The text is the one that the engine would serve: series by series, buckets in the order of their bounds, values
// escaped.
func TestWriteText(t *testing.T) {
	var lines []line
	words := make(map[string]string)
	for _, le := range []string{"+Inf", "10", "0.5", "2.5"} {
		for _, engine := range []string{"1", "0"} {
			lines = append(lines, lineOf(&Sample{Metric: map[string]string{"__name__": "h_bucket", "le": le, "engine": engine, "job": "j", "instance": "i"}, Value: 3}, nil, words))
		}
	}
	lines = append(lines, lineOf(&Sample{Metric: map[string]string{"__name__": "g", "model_name": "a\"b\\c\nd"}, Value: 0.25}, nil, words))
	var want strings.Builder
	want.WriteString(`g{model_name="a\"b\\c\nd",} 0.25` + "\n")
	for _, engine := range []string{"0", "1"} {
		for _, le := range []string{"0.5", "2.5", "10", "+Inf"} {
			fmt.Fprintf(&want, "h_bucket{engine=\"%s\",le=\"%s\"} 3\n", engine, le)
		}
	}
	var got bytes.Buffer
	writeText(&got, lines)
	if got.String() != want.String() {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want.String())
	}
}

func TestParseMatch(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		`job="vllm"`:                      `job="vllm"`,
		` { job = "vllm" , a!~"x|y" , } `: `job="vllm",a!~"x|y"`,
		`pod=~"llm-[0-9]+",ns!="a\"b"`:    `pod=~"llm-[0-9]+",ns!="a\"b"`,
		"job=`v`":                         `job="v"`,
	} {
		if got, err := ParseMatch(text); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"vllm": "no operator", "job=vllm": "double quotes", `job="a" b="c"`: "comma", `{job="a"`: "brace", `job=~"("`: "not a valid regular expression",
		`__name__="up"`: "sets __name__ itself", `="a"`: "not a label name", `job="a`: "double quotes", `up{job="a"}`: "no operator",
	} {
		if _, err := ParseMatch(text); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one with %q", text, err, why)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{Example, `{a="b"}`, "a=~`x`", `a="\x"`, "}{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := ParseMatch(text)
		if err != nil {
			return
		}
		if again, err := ParseMatch(once); err != nil || again != once {
			t.Errorf("%q becomes %q, and that %q, %v", text, once, again, err)
		}
	})
}
