package report

import (
	"cmp"
	"encoding/csv"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// inRequestsCSV reports whether the CSV of requests has a member of a request. Texts are for other formats.
func inRequestsCSV(name string) bool { return name != "" && name != "text" && name != "absent" }

// eachCell calls put for each number, word and count of a struct, with its path in the JSON document: for a list its
// length. Absent ones are "".
func eachCell(s reflect.Value, path string, put func(name, cell string)) {
	for i := range s.NumField() {
		name, options, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
		if !inRequestsCSV(name) {
			continue
		}
		name = path + name
		putCount := func(n int) {
			if n == 0 && options != "" { // JSON omits it
				put(name, "")
				return
			}
			put(name, strconv.Itoa(n))
		}
		switch x := s.Field(i).Interface().(type) {
		case event.Reading:
			put(name, decimal(x))
		case string:
			put(name, textCell(x))
		case *string:
			if x == nil {
				x = new(string)
			}
			put(name, textCell(*x))
		case bool:
			put(name, strconv.FormatBool(x))
		case event.RequestID:
			put(name, strconv.FormatUint(uint64(x), 10))
		case uint64:
			put(name, strconv.FormatUint(x, 10))
		case int:
			putCount(x)
		case []Stall:
			putCount(len(x))
		case []Wait:
			putCount(len(x))
		case []Token:
			putCount(len(x))
		case Parts:
			for _, stage := range append(event.Components(), event.StageNone) {
				part := stage.Component()
				cell := ""
				if at := slices.IndexFunc(x, func(p Part) bool { return p.Name == part }); at >= 0 {
					cell = decimal(x[at].Time)
				}
				put(name+"."+part, cell)
			}
		case *Distribution:
			if x != nil {
				eachCell(reflect.ValueOf(*x), name+".", put)
				continue
			}
			eachCell(reflect.ValueOf(Distribution{}), name+".", func(name, _ string) { put(name, "") })
		}
	}
}

// requestColumns are the columns of the CSV of requests: those of JSON, in its order.
var requestColumns = sync.OnceValue(func() (names []string) {
	eachCell(reflect.ValueOf(Request{}), "", func(name, _ string) { names = append(names, name) })
	return names
})

// eachReport calls f for the report and each replica of its fleet, with the name of the replica.
func (r *Report) eachReport(f func(r *Report, replica string)) {
	f(r, "")
	if r.Fleet != nil {
		for i := range r.Fleet.Replicas {
			f(r.Fleet.Replicas[i].Report, r.Fleet.Replicas[i].Name)
		}
	}
}

// servers reports whether some of the engines are servers with numbers of their own.
func (r *Report) servers() (some bool) {
	r.eachReport(func(r *Report, _ string) { some = some || len(r.Reported.Numbers) > 0 })
	return some
}

// writeRequestsCSV writes one row per request.
func writeRequestsCSV(r *Report, out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write(requestColumns()) // the first error sticks
	r.eachReport(func(r *Report, replica string) {
		for i := range r.Requests {
			q := r.Requests[i]
			q.Replica = cmp.Or(q.Replica, replica)
			var row []string
			eachCell(reflect.ValueOf(q), "", func(_, cell string) { row = append(row, cell) })
			_ = w.Write(row)
		}
	})
	w.Flush()
	return w.Error()
}

// tokenColumns are the columns of the CSV of tokens, named as in JSON where it has them.
var tokenColumns = []string{"replica", "request", "token", "index", "t_s", "gap_s", "step", "id", "logprob", "stall_cause", "reasoning"}

// WriteTokensCSV writes one row per token of each request, without its text. Tokens that share a timestamp have the
// same time and gap; id and log probability are those of the first of them. reasoning is 1 or 0, and empty for requests of
// whose tokens none is known to be reasoning.
func (r *Report) WriteTokensCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write(tokenColumns) // the first error sticks
	r.eachReport(func(r *Report, replica string) {
		for q := range r.all() {
			q.writeTokens(w, replica)
		}
	})
	w.Flush()
	return w.Error()
}

// writeTokens writes the rows of a request.
func (q *Request) writeTokens(w *csv.Writer, replica string) {
	causes := make(map[int]string, len(q.Stalls)) // by the number of the late token
	for _, s := range q.Stalls {
		causes[s.Index] = s.Cause.Cause
	}
	nth, reasons := 0, slices.ContainsFunc(q.Tokens, func(t Token) bool { return t.Reasons > 0 })
	for i := range q.Tokens {
		t := &q.Tokens[i]
		id, logp, step := "", decimal(t.LogProb), ""
		if t.ID != nil {
			id = strconv.Itoa(int(*t.ID))
		}
		if t.Step > 0 {
			step = strconv.FormatUint(t.Step, 10)
		}
		cause := textCell(causes[nth])
		for k := range int(max(t.N, 1)) {
			reasoning := ""
			if reasons {
				reasoning = strconv.Itoa(min(1, max(int(t.Reasons)-k, 0)))
			}
			_ = w.Write([]string{
				textCell(cmp.Or(q.Replica, replica)), strconv.FormatUint(uint64(q.ID), 10), strconv.Itoa(nth), strconv.Itoa(int(t.Index) + k),
				decimal(t.At), decimal(t.Gap), step, id, logp, cause, reasoning,
			})
			id, logp = "", ""
			nth++
		}
	}
}

// textCell returns a text cell in plain ASCII. Spreadsheets run cells that start with = + - @ as formulas, so it puts a
// ' before them, which marks text. Numbers are never text here.
func textCell(s string) string {
	s = plain(s)
	if trimmed := strings.TrimLeft(s, " "); trimmed != "" && strings.IndexByte("=+-@", trimmed[0]) >= 0 {
		return "'" + s
	}
	return s
}
