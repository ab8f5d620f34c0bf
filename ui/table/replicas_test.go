package table

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
)

func replicasFor(names ...string) (out []*fleet.Replica) {
	for i, n := range names {
		r := &fleet.Replica{Name: n, State: "live", Model: "llama"}
		r.Cells[fleet.Waiting].Reading = event.DerivedValue(float64(i))
		r.Cells[fleet.TTFT].Reading = event.DerivedValue(0.1 * float64(i))
		out = append(out, r)
	}
	out[len(out)-1].Cells[fleet.TTFT].Reading = event.Absent(event.NotReported)
	return out
}

// replicas returns an empty list with a filter.
func replicas(f Filter[*fleet.Replica]) (l List[*fleet.Replica, fleet.Field]) {
	l.Filter = f
	return l
}

func namesOf(l *List[*fleet.Replica, fleet.Field]) string {
	var out []string
	for _, r := range l.Rows {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

func TestReplicasInOrder(t *testing.T) {
	all := replicasFor("r10", "r2", "r1", "r02x")
	for _, c := range []struct {
		by   fleet.Field
		down bool
		want string
	}{
		{fleet.Name, false, "r1 r2 r02x r10"},
		{fleet.Name, true, "r10 r02x r2 r1"},
		{fleet.Waiting, true, "r02x r1 r2 r10"},
		{fleet.TTFT, true, "r1 r2 r10 r02x"}, // absent values come last in both directions
		{fleet.TTFT, false, "r10 r2 r1 r02x"},
	} {
		l := replicas(Filter[*fleet.Replica]{})
		l.By, l.Down = c.by, c.down
		if l.Update(&ReplicaFilters, all); namesOf(&l) != c.want {
			t.Errorf("by %v, down %v: %s, want %s", c.by, c.down, namesOf(&l), c.want)
		}
	}
}

func TestFilterOfReplicas(t *testing.T) {
	all := replicasFor("gpu1", "gpu2", "gpu3", "xpu4")
	for text, want := range map[string]string{
		"":                "gpu1 gpu2 gpu3 xpu4",
		"gpu":             "gpu1 gpu2 gpu3",
		"-gpu":            "xpu4",
		"ttft>50ms":       "gpu2 gpu3",
		"-ttft>50ms":      "gpu1",
		"ttft<=0.1s gpu2": "gpu2",
		"waiting>=2":      "gpu3 xpu4",
		"model=LLA":       "gpu1 gpu2 gpu3 xpu4",
		"model!=lla":      "",
		`"gpu2"`:          "gpu2",
	} {
		f, err := ReplicaFilters.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		l := replicas(f)
		if l.Update(&ReplicaFilters, all); namesOf(&l) != want {
			t.Errorf("%s selects %q, want %q", text, namesOf(&l), want)
		}
	}
	for text, why := range map[string]string{
		"speed>4": "unknown column", "ttft>x": "cannot compare", "model>3": "is a word", "waiting=>4": "unknown comparison", `"open`: "unclosed quote", "-": "is empty",
	} {
		if _, err := ReplicaFilters.Parse(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: error %v, want %q", text, err, why)
		}
	}
}

func FuzzParseReplicas(f *testing.F) {
	for _, s := range []string{ReplicaFilters.Example, `model="a b" -x`, "ttft>=1e9s", "kv!=", "=", "<<"} {
		f.Add(s)
	}
	all := replicasFor("a", "b")
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := ReplicaFilters.Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") && !strings.Contains(text, "\n") {
				t.Errorf("the error has several lines: %v", err)
			}
			return
		}
		l := replicas(filter)
		l.Update(&ReplicaFilters, all)
	})
}
