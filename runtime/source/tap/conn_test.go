package tap

import (
	"strings"
	"testing"
)

const chat = "/v1/chat/completions"

// dialogues are what two ends of a connection send, and the events of it.
var dialogues = []struct {
	name  string
	part  bool // the beginning of the connection was not captured
	steps []step
	want  string
}{
	{"a stream", false, []step{
		client(10, post(chat, `{"model":"m","max_tokens":9}`)),
		server(100, chunkedHead(sse)), server(110, chunk(word("a"))), server(120, chunk(word("b"))), server(130, chunk(word("c"))),
		server(140, chunk(stops)+chunk(usage(5, 3))+chunk(done)+last),
	}, `
1 10 queued chat group=10.0.0.7 model=m max=9
1 110 token n=1 index=0 choice=0
1 120 token n=1 index=1 choice=0
1 130 token n=1 index=2 choice=0
1 140 finished "stop" in=5 cached=0 out=3 later=2
`},
}

// TestDialogues checks the events of dialogues, however their bytes are cut.
func TestDialogues(t *testing.T) {
	for _, d := range dialogues {
		t.Run(d.name, func(t *testing.T) {
			run := func(cut func(int) int) string {
				tap, log := newTap(t, Options{Port: 8000})
				f := flow()
				f.Whole = !d.part
				play(tap.open(f), d.steps, cut)
				if tap.held != 0 && d.steps[len(d.steps)-1].does != "" {
					t.Errorf("%d bytes are held", tap.held)
				}
				return outline(log.All())
			}
			if got := run(whole); got != strings.TrimPrefix(d.want, "\n") {
				t.Errorf("got\n%swant%s", got, d.want)
			}
			if d.part {
				return // where pieces begin matters
			}
			want := run(whole)
			for i, s := range d.steps {
				for at := 1; at < len(s.text); at++ {
					if got := run(func(j int) int {
						if i == j {
							return at
						}
						return 0
					}); got != want {
						t.Fatalf("step %d cut at %d: got\n%swant\n%s", i, at, got, want)
					}
				}
			}
		})
	}
}
