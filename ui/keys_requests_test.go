package ui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
)

// requestKeyCases test the keys of the requests table and of a request.
var requestKeyCases = map[string]func(*testing.T, *app, *calls){
	"filter": func(t *testing.T, a *app, _ *calls) {
		a.press("2", "/", "g", "e", "n", "<", "9", "0")
		holds(t, a, "1 of 8, newest first")
		a.press("enter")
		holds(t, a, " filter: gen<90 ")
		a.press("/", "x")
		holds(t, a, `cannot compare gen with "90x": write a value such as gen>100`)
		a.press("enter") // enter does not apply an invalid filter
		a.press("esc")
		holds(t, a, " filter: gen<90 ")
		a.press("/", "ctrl+u", "enter")
		holds(t, a, "Requests ─ 8, newest first")
		a.press("/", "f", "a", "i", "l", "e", "d")
		holds(t, a, "no request matches the filter")
		a.press("enter", "esc")
		if holds(t, a, "Requests ─ 8, newest first"); a.view != viewRequests {
			t.Error("esc leaves the view before it removes the filter")
		}
	},
	"timeline": func(t *testing.T, a *app, _ *calls) {
		a.press("2", "v")
		holds(t, a, "Requests ─ timeline")
		a.press("v")
		holds(t, a, "newest first")
	},
	"follow": func(t *testing.T, a *app, _ *calls) {
		a.press("2")
		holds(t, a, "following the newest")
		a.press("f")
		holds(t, a, "pinned to #8")
		a.press("down")
		holds(t, a, "pinned to #7")
		a.press("f")
		holds(t, a, "following the newest")
	},
	"sort by column to the left": func(t *testing.T, a *app, _ *calls) {
		a.press("2")
		a.View()
		for range table.NumFields { // fewer, without the columns that say nothing
			a.press("<")
			a.View()
			if a.requests.List.By == table.Age {
				break
			}
			if by := a.requests.List.By; !slices.ContainsFunc(a.requests.Heads, func(h pane.Head[table.Field]) bool { return h.Field == by }) {
				t.Errorf("the rows are sorted by %v, which is not shown", by)
			}
		}
		if by := a.requests.List.By; by != table.Age {
			t.Errorf("the columns do not wrap around: %v", by)
		}
		a.press("<")
		holds(t, a, "↑state")
		if by := a.requests.List.By; by != table.State {
			t.Errorf("the column left of age is %v", by)
		}
	},
	"sort": func(t *testing.T, a *app, _ *calls) {
		a.press("2")
		a.View()
		for a.requests.List.By != table.TTFT {
			a.press(">")
			a.View()
		}
		holds(t, a, "8, by TTFT")
		rows := a.requests.List.Rows
		if holds(t, a, "↓TTFT"); !slices.IsSortedFunc(rows, func(x, y *store.Request) int { return cmp.Compare(y.TTFT.V, x.TTFT.V) }) {
			t.Error("the largest does not come first")
		}
	},
	"reverse": func(t *testing.T, a *app, _ *calls) {
		a.press("2", "r")
		holds(t, a, "oldest first")
		holds(t, a, "↓age")
	},
	"open": func(t *testing.T, a *app, _ *calls) {
		a.press("2", "down", "enter")
		if holds(t, a, "╭─ Request ─ #7 "); a.view != viewRequest || a.requests.Follow {
			t.Error("the request is not pinned")
		}
		a.press("esc")
		if holds(t, a, "pinned to #7"); a.view != viewRequests {
			t.Error("esc does not go back to the table")
		}
	},
	"inspect": func(t *testing.T, a *app, k *calls) {
		a.press("6")
		holds(t, a, "press i to measure")
		a.press("i")
		if holds(t, a, "PSS and page cache: shown with the next sample"); !slices.Equal(k.machine, []string{"inspect (built in)"}) {
			t.Errorf("calls of the machine: %q", k.machine)
		}
	},
	"previous token": func(t *testing.T, a *app, _ *calls) {
		a.press("3")
		holds(t, a, "Token 73  the last")
		a.press("left", "left")
		holds(t, a, "Token 71")
	},
	"token": func(t *testing.T, a *app, _ *calls) {
		a.press("3")
		a.View()
		a.press("home", "right", "right", "right")
		holds(t, a, "Token 3")
		a.View()
		a.press("end", "right")
		holds(t, a, "Token 73")
	},
	"request above": func(t *testing.T, a *app, _ *calls) {
		a.press("2", "end", "enter")
		holds(t, a, "╭─ Request ─ #1 ")
		a.press("<", "<")
		holds(t, a, "╭─ Request ─ #3 ")
	},
	"request": func(t *testing.T, a *app, _ *calls) {
		a.press("3")
		holds(t, a, "╭─ Request ─ #8 ")
		a.press(">", ">")
		holds(t, a, "╭─ Request ─ #6 ")
	},
	"axis": func(t *testing.T, a *app, _ *calls) {
		a.press("3")
		holds(t, a, "enqueued to first token, 8.44 ms")
		a.press("x")
		holds(t, a, "enqueued to the end, 1.83 s")
	},
	"stall": func(t *testing.T, a *app, _ *calls) {
		a.press("3", "n")
		holds(t, a, "no stall")
		a.press("2", "end", "enter")
		holds(t, a, "Token 12  the slowest")
		a.press("n")
		holds(t, a, "Token 313")
		a.press("n")
		holds(t, a, "Token 2")
	},
	"slowest": func(t *testing.T, a *app, _ *calls) {
		a.press("2", "end", "enter")
		holds(t, a, "Token 12  the slowest")
		a.press("n")
		holds(t, a, "Token 313")
		a.press("N")
		holds(t, a, "Token 12  the slowest")
	},
	"copy": func(t *testing.T, a *app, _ *calls) {
		for _, view := range []string{"2", "3"} {
			cmd := a.press(view, "y")
			if cmd == nil {
				t.Fatal("nothing is copied")
			}
			words := fmt.Sprint(cmd())
			if !strings.HasPrefix(words, `{"id":8,"label":"scripture"`) || !json.Valid([]byte(words)) {
				t.Errorf("copied %.200s", words)
			}
			holds(t, a, "#8 copied as JSON, ")
		}
	},
}
