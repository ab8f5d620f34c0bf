//go:build amd64 || arm64

package probe

import (
	"slices"
	"strings"
	"testing"
)

// run computes a prompt in sequence 0 and samples n tokens, all with id 9.
func (p *process) run(first int32, prompt []int32, n int) {
	p.begin(rows{0, first, true, prompt})
	p.end()
	p.sample(int32(len(prompt))-1, 9)
	at := first + int32(len(prompt))
	for i := range int32(n) - 1 {
		p.begin(rows{0, at + i, true, []int32{9}})
		p.end()
		p.sample(0, 9)
	}
}

// starts returns the lines of a log about the begin and the end of requests.
func (l *log) requests() []string {
	return slices.DeleteFunc(slices.Clone(l.lines), func(s string) bool {
		return !strings.Contains(s, "queued") && !strings.Contains(s, "receive") && !strings.Contains(s, "send") &&
			!strings.Contains(s, "running") && !strings.Contains(s, "finished") && !strings.Contains(s, "cancelled")
	})
}

func (p *process) receive(tid uint32, fd int32) {
	p.apply(kindReceived, tid, &probesTransfer{Fd: fd, Bytes: 9})
}

func (p *process) send(tid uint32, fd int32) {
	p.apply(kindSent, tid, &probesTransfer{Fd: fd, Bytes: 9})
}

func (p *process) leave(tid uint32, fd int32) { p.apply(kindReceived, tid, &probesTransfer{Fd: fd}) }

// TestConnections matches requests to the connections on which they came where that is certain, and gives them no begin
// otherwise.
func TestConnections(t *testing.T) {
	prompt := []int32{1, 2, 3}
	for name, c := range map[string]struct {
		do   func(p *process)
		want string
	}{
		"another request on the connection before": {func(p *process) {
			p.receive(7, 4)
			p.send(7, 4)
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.run(0, prompt, 1)
		}, "#1 queued at 3000, #1 receive 3000..3000, #1 running at 5000"},
		"a server that asks for the rest": {func(p *process) {
			p.receive(7, 4)
			p.apply(kindSent, 7, &probesTransfer{Fd: 4, Bytes: continueBytes, Headers: 1})
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.run(0, prompt, 1)
		}, "#1 queued at 1000, #1 receive 1000..3000, #1 running at 5000"},
		"headers before the first token": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.apply(kindSent, 7, &probesTransfer{Fd: 4, Bytes: 180, Headers: 1})
			p.run(0, prompt, 1)
			p.send(7, 4)
			p.begin(rows{0, 3, true, []int32{9}})
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 4000, #1 send 7000..8000"},
		"an answer of headers before": {func(p *process) {
			p.receive(7, 4)
			p.apply(kindSent, 7, &probesTransfer{Fd: 4, Bytes: 180, Headers: 1})
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.run(0, prompt, 1)
		}, "#1 queued at 3000, #1 receive 3000..3000, #1 running at 5000"},
		"the same prompt twice": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.receive(8, 5)
			p.tokenize(8, 1, 2, 3)
			p.run(0, prompt, 1)
		}, "#1 running at 5000"},
		"the same end twice, after different beginnings": {func(p *process) {
			p.run(0, []int32{1, 2}, 1)
			p.receive(7, 4)
			p.tokenize(7, 5, 6, 3)
			p.receive(8, 5)
			p.tokenize(8, 1, 2, 3)
			p.run(2, []int32{3}, 1)
		}, "#1 queued at 1000, #1 running at 1000, #1 finished at 4000 \"\" prompt 2 cached 0 generated 1, " +
			"#2 queued at 7000, #2 receive 7000..7000, #2 running at 9000"},
		"a text that was only tokenized": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.send(7, 4)
			p.run(0, prompt, 1)
		}, "#1 running at 4000"},
		"a client that left before its turn": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.leave(7, 4)
			p.receive(8, 5)
			p.tokenize(8, 1, 2, 3)
			p.run(0, prompt, 1)
		}, "#1 queued at 4000, #1 receive 4000..4000, #1 running at 6000"},
		"a thread with several connections": {func(p *process) {
			p.receive(7, 4)
			p.receive(7, 5)
			p.tokenize(7, 1, 2, 3)
			p.run(0, prompt, 1)
		}, "#1 queued at 2000, #1 running at 4000"},
		"an answer in one piece": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.run(0, prompt, 3)
			p.send(7, 4)
			p.t.expire(p.now + 2*idleEnd)
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 3000, #1 finished at 14000 \"\" prompt 3 cached 0 generated 3"},
		"a client that left while its answer was streamed": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.run(0, prompt, 1)
			p.send(7, 4)
			p.begin(rows{0, 3, true, []int32{9}})
			p.leave(7, 4)
			p.end()
			p.sample(0, 9)
			p.t.expire(p.now + 2*idleEnd)
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 3000, #1 send 6000..7000, " +
			"#1 cancelled at 12000 \"cancelled\" prompt 3 cached 0 generated 2"},
		"a client that left between two tokens of a stream": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.apply(kindSent, 7, &probesTransfer{Fd: 4, Bytes: 180, Headers: 1})
			p.run(0, prompt, 1)
			p.send(7, 4)
			p.leave(7, 4)
			p.t.expire(p.now + 2*idleEnd)
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 4000, #1 cancelled at 7000 \"cancelled\" prompt 3 cached 0 generated 1"},
		"a client that left after the end of a stream": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.apply(kindSent, 7, &probesTransfer{Fd: 4, Bytes: 180, Headers: 1})
			p.run(0, prompt, 1)
			p.send(7, 4)
			p.apply(kindSent, 7, &probesTransfer{Fd: 4, Bytes: 5, Headers: 1})
			p.leave(7, 4)
			p.t.expire(p.now + 2*idleEnd)
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 4000, #1 finished at 7000 \"\" prompt 3 cached 0 generated 1"},
		"a client that left during its prompt": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.begin(rows{0, 0, false, []int32{1, 2}})
			p.apply(kindReceived, 7, &probesTransfer{Fd: 4, Bytes: -104})
			p.end()
			p.t.expire(p.now + 2*idleEnd)
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 3000, " +
			"#1 cancelled at 6000 \"cancelled\" prompt 2 cached 0 generated 0"},
		"a client that left after its answer": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.run(0, prompt, 1)
			p.send(7, 4)
			p.leave(7, 4)
			p.t.expire(p.now + 2*idleEnd)
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 3000, #1 finished at 6000 \"\" prompt 3 cached 0 generated 1"},
		"embeddings, in two passes": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3, 4)
			for at, tokens := range [][]int32{{1, 2}, {3, 4}} {
				p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: 2})
				first := int32(2 * at)
				p.batch([]row{{token: tokens[0], pos: first, output: true}, {token: tokens[1], pos: first + 1, output: true}}, 0)
				p.end()
			}
			p.send(7, 4)
			p.t.expire(p.now)
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 3000, #1 finished at 8000 \"\" prompt 4 cached 0 generated 0"},
		"probes that came during the prompt": {func(p *process) {
			p.run(64, prompt, 1)
		}, "#1 running at 1000"},
		"a conversation that goes on": {func(p *process) {
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3)
			p.run(0, prompt, 2)
			p.send(7, 4)
			p.receive(7, 4)
			p.tokenize(7, 1, 2, 3, 9, 9) // with the answer, whose last token was not computed
			p.run(4, []int32{9}, 1)
		}, "#1 queued at 1000, #1 receive 1000..1000, #1 running at 3000, #1 finished at 10000 \"\" prompt 3 cached 0 generated 2, " +
			"#2 queued at 12000, #2 receive 12000..12000, #2 running at 14000"},
	} {
		t.Run(name, func(t *testing.T) {
			p, l := watch()
			c.do(p)
			if got := strings.Join(l.requests(), ", "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestHeldTokens holds the tokens of an answer that has not left for a while only.
func TestHeldTokens(t *testing.T) {
	p, l := watch()
	p.receive(7, 4)
	p.tokenize(7, 1, 2)
	p.run(0, []int32{1, 2}, 2)
	tokens := func() int { return strings.Count(strings.Join(l.lines, "\n"), "token 9") }
	if n := tokens(); n != 0 {
		t.Errorf("%d tokens before it is known when they left", n)
	}
	p.t.expire(p.now + sendWait)
	if n := tokens(); n != 2 {
		t.Errorf("%d tokens after a while, want 2", n)
	}
}

// TestDrafts keeps the passes of a draft model apart, and counts what its drafts cost and bring.
func TestDrafts(t *testing.T) {
	p, l := watch()
	p.run(0, []int32{1, 2}, 1)
	p.apply(kindPassBegin, 1, &probesPass{Ctx: 2, Tokens: 1, Result: 1})
	p.apply(kindPassEnd, 1, &probesPass{Ctx: 2})
	p.apply(kindDrafted, 1, &probesDrafted{Began: p.now - 2000})
	p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: 3})
	p.batch([]row{{token: 9, pos: 2, output: true}, {token: 5, pos: 3, output: true}, {token: 6, pos: 4, output: true}}, 0)
	p.end()
	p.apply(kindDrafted, 1, &probesDrafted{Began: p.now, Follows: 1})
	p.sample(0, 5)
	p.sample(1, 7) // instead of 6
	p.apply(kindRemoved, 1, &probesRemoved{Seq: 0, From: 4, To: -1})
	p.begin(rows{0, 4, true, []int32{7}})
	p.end()
	p.sample(0, 8)
	p.t.endAll()
	p.t.reportSpeculation(speculationEvery)
	expect(t, l, `
		#1 queued at 1000
		#1 running at 1000
		#1 prompt 1000..3000
		pass 1 decode 0 prompt 2
		#1 first_token 3000..4000
		#1 token 9 at 4000 pass 1
		#1 none 4000..7000
		pass 2 decode 3 prompt 0
		#1 token 5 at 12000 pass 2
		#1 token 7 at 13000 pass 2
		pass 3 decode 1 prompt 0
		#1 token 8 at 18000 pass 3
		#1 finished at 18000 "" prompt 2 cached 0 generated 4
		drafts 4000 ns, drafted [1 1] accepted [1 0], drafting true requests 1 rows 3: 1 x, 2000 ns, 2 tokens, drafting false requests 1 rows 1: 1 x, 2000 ns, 1 tokens`)
}
