package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// stalled returns a run with tokens that share a timestamp, passes with numbers, and a stall.
func stalled() *Report {
	r := wholeRun().build(Meta{})
	r.Requests[1].Label = "in ASCII" // the documents replace other text differently
	q := &r.Requests[0]
	q.Tokens[1].N, q.Tokens[1].Step = 3, 7
	q.Stalls = []Stall{{Index: q.Tokens[0].tokens() + 3, Cause: Cause{Cause: "prompt_of_other"}}}
	q.Tokens = append(q.Tokens[:2], Token{Index: 9, At: nanos(5e8), Gap: nanos(1e8)})
	return r
}

// tokens returns how many tokens have the timestamp.
func (t *Token) tokens() int { return int(max(t.N, 1)) }

// table reads a CSV as rows by column.
func table(t *testing.T, write func(io.Writer) error) (rows []map[string]string) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, cell := range cells {
			row[all[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

// TestRequestsCSVHasWhatJSONHas compares each number and word of each request in JSON with its cell.
func TestRequestsCSVHasWhatJSONHas(t *testing.T) {
	r := stalled()
	rows := table(t, r.WriteCSV)
	if len(rows) != len(r.Requests) {
		t.Fatalf("%d rows, want %d", len(rows), len(r.Requests))
	}
	for i := range r.Requests {
		text, err := json.Marshal(&r.Requests[i])
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		var compare func(path string, v any)
		compare = func(path string, v any) {
			cell, ok := rows[i][path]
			want := ""
			switch v := v.(type) {
			case map[string]any:
				for name, member := range v {
					compare(path+"."+name, member)
				}
				return
			case []any:
				want = strconv.Itoa(len(v))
			case nil:
			case float64:
				want = strconv.FormatFloat(v, 'g', -1, 64)
				if got, err := strconv.ParseFloat(cell, 64); err == nil && got == v {
					want = cell
				}
			default:
				want = textCell(fmt.Sprint(v))
			}
			if path != "layers" && (!ok && v != nil || cell != want) {
				t.Errorf("%s of request %d is %q, want %q", path, i, cell, want)
			}
		}
		for name, v := range doc {
			if inRequestsCSV(name) && name != "answer" {
				compare(name, v)
			}
		}
		for _, name := range []string{"choices", "waits"} { // empty means absent
			if _, ok := doc[name]; !ok && rows[i][name] != "" {
				t.Errorf("%s of request %d is %q, JSON has none", name, i, rows[i][name])
			}
		}
	}
}

// TestTokensCSVHasOneRowPerToken checks that tokens that share a timestamp have a row each, and that a stall and reasoning
// are at their tokens.
func TestTokensCSVHasOneRowPerToken(t *testing.T) {
	r := stalled()
	r.Requests[0].Tokens[1].Reasons = 2
	rows := table(t, r.WriteTokensCSV)
	want, gaps := 0, 0.0
	for _, q := range r.Requests {
		for _, token := range q.Tokens {
			want += token.tokens()
			gaps += token.Gap.V * float64(token.tokens())
		}
	}
	sum, late := 0.0, []string{}
	for _, row := range rows {
		gap, _ := strconv.ParseFloat(row["gap_s"], 64) // the first has none
		sum += gap
		if row["stall_cause"] != "" {
			late = append(late, row["request"]+" "+row["token"]+" "+row["index"]+" "+row["stall_cause"])
		}
	}
	if len(rows) != want || math.Abs(sum-gaps) > 1e-12 {
		t.Errorf("%d rows with gaps of %v s, want %d with %v s", len(rows), sum, want, gaps)
	}
	q := &r.Requests[0]
	if stall := fmt.Sprintf("%d %d 9 prompt_of_other", q.ID, q.Stalls[0].Index); len(late) != 1 || late[0] != stall {
		t.Errorf("stalls at %q, want %q", late, stall)
	}
	reasoning := map[string]string{}
	for _, row := range rows {
		reasoning[row["request"]] += row["reasoning"]
	}
	if first, other := reasoning[fmt.Sprint(q.ID)], reasoning[fmt.Sprint(r.Requests[1].ID)]; !strings.HasPrefix(first, "0110") || other != "" {
		t.Errorf("reasoning of %q and %q", first, other)
	}
	if row := rows[2]; row["step"] != "7" || row["token"] != "2" || row["id"] != "" || rows[1]["id"] == "" {
		t.Errorf("the second of three tokens is %v", row)
	}
}

// TestFleetsHaveRequests checks that the requests of engines without aggregate metrics have the name of their engine.
func TestFleetsHaveRequests(t *testing.T) {
	r := &Report{Fleet: &Fleet{Replicas: []Replica{{Name: "a", Report: stalled()}, {Name: "b", Report: stalled()}}}}
	rows := table(t, r.WriteCSV)
	if n := len(stalled().Requests); len(rows) != 2*n || rows[0]["replica"] != "a" || rows[n]["replica"] != "b" {
		t.Errorf("rows of %d requests: %v", len(rows), rows)
	}
	if rows := table(t, r.WriteTokensCSV); rows[0]["replica"] != "a" || rows[len(rows)-1]["replica"] != "b" {
		t.Errorf("tokens of replicas: %v", rows)
	}
	r.Fleet.Replicas[0].Report.Reported.Numbers = []store.ServerNumber{{Name: "running", Value: Measured(1)}}
	if rows := table(t, r.WriteCSV); rows[0]["name"] == "" {
		t.Errorf("a fleet with a server has %v", rows[0])
	}
}

// TestSQLiteReadsCSV imports the files as docs/metrics.md shows, and compares sums with the JSON document.
func TestSQLiteReadsCSV(t *testing.T) {
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("needs sqlite3 (Debian: apt-get install sqlite3)")
	}
	r, dir := stalled(), t.TempDir()
	for name, write := range map[string]func(io.Writer) error{"requests.csv": r.WriteCSV, "tokens.csv": r.WriteTokensCSV} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	query := exec.Command(program, "-csv", ":memory:", ".import requests.csv requests", ".import tokens.csv tokens",
		`SELECT count(*), sum(generated_tokens), sum(ttft_s), sum("ttft_components_s.prompt"), sum(stalls) FROM requests;`,
		`SELECT count(*), sum(gap_s), count(nullif(stall_cause, '')) FROM tokens JOIN requests ON request = requests.id;`)
	query.Dir = dir
	out, err := query.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := make([]float64, 8)
	for _, q := range r.Requests {
		want[0]++
		want[1] += float64(q.Generated)
		want[2] += q.TTFT.V
		for _, p := range q.Parts {
			if p.Name == event.StagePrompt.String() {
				want[3] += p.Time.V
			}
		}
		want[4] += float64(len(q.Stalls))
		want[7] += float64(len(q.Stalls))
		for _, token := range q.Tokens {
			want[5] += float64(token.tokens())
			want[6] += token.Gap.V * float64(token.tokens())
		}
	}
	for i, cell := range strings.FieldsFunc(string(out), func(r rune) bool { return strings.ContainsRune(",\r\n", r) }) {
		if got, err := strconv.ParseFloat(cell, 64); err != nil || i >= len(want) || math.Abs(got-want[i]) > 1e-9 {
			t.Errorf("value %d is %s, want %v, in\n%s", i, cell, want, out)
		}
	}
	if want[1] == 0 || want[2] == 0 || want[3] == 0 || want[7] == 0 {
		t.Errorf("the run has nothing to sum: %v", want)
	}
}
