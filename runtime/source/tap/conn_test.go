package tap

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/tap/capture"
)

const chat = "/v1/chat/completions"

// does returns a step in which one side sends nothing.
func does(at int, from capture.Side, what string) step { return step{at: at, from: from, does: what} }

// answer returns an answer that is no stream.
func answer(status, body string) string { return document("HTTP/1.1 "+status, body) }

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

const full = `{"object":"chat.completion","model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":2}}`

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
		server(140, chunk(stops)+chunk(usage(5, 3))+chunk(done)+last), does(150, capture.Client, "close"), does(151, 0, "closed"),
	}, `
1 10 queued chat group=10.0.0.7 model=m max=9
1 110 token n=1 index=0 choice=0
1 120 token n=1 index=1 choice=0
1 130 token n=1 index=2 choice=0
1 140 finished "stop" in=5 cached=0 out=3 later=2
`},
	{"the request is complete with its body", false, []step{
		client(10, post(chat, "{}")[:60]), client(30, post(chat, "{}")[60:]), server(100, answer("200 OK", full)), does(101, 0, "closed"),
	}, `
1 30 queued chat group=10.0.0.7 model= max=0
1 100 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"one after the other, and some that generate nothing", false, []step{
		client(1, "GET /health HTTP/1.1\r\n\r\n"), server(2, answer("200 OK", "{}")),
		client(3, "HEAD / HTTP/1.1\r\n\r\n"), server(4, "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"),
		client(5, "DELETE /x HTTP/1.1\r\n\r\n"), server(6, "HTTP/1.1 204 No Content\r\n\r\n"),
		client(7, "GET /y HTTP/1.1\r\n\r\n"), server(8, "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
		client(9, post("/v1/embeddings", "{}")), server(10, answer("200 OK", "{}")),
		client(11, post(chat, "{}")), server(12, answer("200 OK", full)),
		client(13, post(chat, "{}")), server(14, answer("404 Not Found", `{"error":{"message":"no","type":"not_found"}}`)),
	}, `
1 11 queued chat group=10.0.0.7 model= max=0
1 12 finished "stop" in=4 cached=0 out=2 later=0
2 13 queued chat group=10.0.0.7 model= max=0
2 14 failed "HTTP 404 Not Found (not_found)" in=0 cached=0 out=0 later=0
`},
	{"pipelined", false, []step{
		client(1, post(chat, `{"model":"a"}`)+"GET / HTTP/1.1\r\n\r\n"+post(chat, `{"model":"b"}`)),
		server(5, chunkedHead(sse)+chunk(word("a"))), server(6, chunk(stops)+last+answer("200 OK", "{}")+answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model=a max=0
2 1 queued chat group=10.0.0.7 model=b max=0
1 5 token n=1 index=0 choice=0
log the server does not report generated tokens: each message with text counts as one token
1 6 finished "stop" in=0 cached=0 out=1 later=0
2 6 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"interim answers, and a body that waits for one", false, []step{
		client(1, "POST "+chat+" HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"), server(2, "HTTP/1.1 100 Continue\r\n\r\n"),
		client(3, chunk(`{"model":`)+chunk(`"m"}`)+last), server(4, "HTTP/1.1 102 Processing\r\nX: y\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"), server(9, answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model=m max=0
1 9 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"the answer comes before the end of the request", false, []step{
		client(1, strings.TrimSuffix(post(chat, `{"model":"m"}`), `"m"}`)), server(2, answer("413 Too Large", "{}")), client(3, `"m"}`), client(4, post(chat, "{}")),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 failed "HTTP 413 Request Entity Too Large" in=0 cached=0 out=0 later=0
2 4 queued chat group=10.0.0.7 model= max=0
`},
	{"a body that is not sent, since the answer came first", false, []step{
		client(1, "POST "+chat+" HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 99\r\n\r\n"), server(2, answer("417 No", "{}")), client(3, post(chat, "{}")), server(4, answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 failed "HTTP 417 Expectation Failed" in=0 cached=0 out=0 later=0
2 3 queued chat group=10.0.0.7 model= max=0
2 4 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"an offer of HTTP/2 that the server does not take", false, []step{
		client(1, strings.Replace(post(chat, "{}"), "\r\n", "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n", 1)), server(4, answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 4 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"HTTP/1.0, until the connection is closed", false, []step{
		client(1, strings.Replace(post(chat, "{}"), "HTTP/1.1", "HTTP/1.0", 1)), server(2, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+word("a")),
		server(3, word("b")+stops+usage(5, 2)+done), does(4, capture.Server, "close"), does(5, 0, "closed"),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 3 token n=1 index=1 choice=0
1 4 finished "stop" in=5 cached=0 out=2 later=1
`},
	{"compressed, with extensions of chunks and a trailer", false, []step{
		client(1, post(chat, "{}")), server(2, strings.Replace(chunkedHead(sse), "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1)),
		server(3, strings.Replace(chunk(zipped(word("a")+stops+usage(5, 1)+done)), "\r\n", ";a=b;c=\"d\"\r\n", 1)+"0\r\nX-Trailer: 1\r\nY: 2\r\n\r\n"), client(4, post(chat, "{}")),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 3 token n=1 index=0 choice=0
1 3 finished "stop" in=5 cached=0 out=1 later=0
2 4 queued chat group=10.0.0.7 model= max=0
`},
	{"several messages in a segment and a message in several", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a")+word("b"))), server(3, chunk(word("c")[:20])), server(4, chunk(word("c")[20:]+stops+usage(5, 3)+done)+last),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=2 index=0 choice=0
1 4 token n=1 index=2 choice=0
1 4 finished "stop" in=5 cached=0 out=3 later=1
`},
	{"Ollama", false, []step{
		client(1, post("/api/chat", `{"model":"q"}`)), server(2, chunkedHead("application/x-ndjson")+chunk(`{"model":"q","created_at":"x","message":{"content":"a"},"done":false}`+"\n")),
		server(3, chunk(`{"model":"q","created_at":"x","message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"prompt_eval_duration":500000,"eval_count":1}`+"\n")+last),
	}, `
1 1 queued ollama chat group=10.0.0.7 model=q max=0
1 2 token n=1 index=0 choice=0
1 2 stage prompt 500µs
1 3 finished "stop" in=7 cached=0 out=1 later=0
`},
	{"the client goes away", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), does(3, capture.Client, "close"), server(4, chunk(word("b"))), does(5, capture.Client, "reset"),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 4 token n=1 index=1 choice=0
1 3 cancelled "cancelled" in=0 cached=0 out=2 later=1
`},
	{"the client goes away, and the server ends its answer with an error", false, []step{
		client(1, post("/api/chat", "{}")), server(2, chunkedHead(ndjson)+chunk(`{"model":"q","message":{"content":"a"}}`+"\n")), does(3, capture.Client, "close"),
		server(4, chunk(`{"error":"context canceled"}`+"\n")+last), does(5, 0, "closed"),
	}, `
1 1 queued ollama chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 3 cancelled "cancelled" in=0 cached=0 out=1 later=0
`},
	{"another request cancels it at the server, and its client reads the end", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))),
		server(3, chunk(strings.Replace(stops, "stop", "cancelled", 1))+chunk(usage(5, 1))+chunk(done)+last), does(4, 0, "closed"),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 3 cancelled "cancelled" in=5 cached=0 out=1 later=0
`},
	{"the client resets while it waits", false, []step{client(1, post(chat, "{}")), does(3, capture.Client, "reset")}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 3 cancelled "cancelled" in=0 cached=0 out=0 later=0
`},
	{"the client has sent all and still reads", false, []step{
		client(1, post(chat, "{}")), does(2, capture.Client, "close"), server(3, answer("200 OK", full)), does(4, 0, "closed"),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 3 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"the server resets", false, []step{client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), does(3, capture.Server, "reset")}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 3 failed "the connection broke: read: connection reset by peer" in=0 cached=0 out=1 later=0
`},
	{"the server closes too early", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), does(3, capture.Server, "close"), does(4, 0, "closed"),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 3 failed "the server closed the connection before the end of its answer" in=0 cached=0 out=1 later=0
`},
	{"the server closes without an answer", false, []step{client(1, post(chat, "{}")), does(3, capture.Server, "close")}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 3 failed "the server closed the connection before the end of its answer" in=0 cached=0 out=0 later=0
`},
	{"the capture ends", false, []step{client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), does(3, 0, "stopped")}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
`},
	{"the connection is given up", false, []step{client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), does(3, 0, "abandoned")}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 2 unseen "its end was not received" in=0 cached=0 out=1 later=0 at_least any_end
`},
	{"the connection is given up before the answer", false, []step{client(1, post(chat, "{}")), does(3, 0, "abandoned")}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 1 unseen "its end was not received" in=0 cached=0 out=0 later=0 at_least any_end
`},
	{"the end of a request is missing: when it was sent is unknown", false, []step{
		client(1, post(chat, "{}")[:80]), does(4, capture.Client, fmt.Sprint("gap ", len(post(chat, "{}"))-80)), server(4, chunkedHead(sse)+chunk(word("a"))),
	}, `
1 4 running chat group=10.0.0.7 model= max=0
1 4 token n=1 index=0 choice=0 lost
`},
	{"the last tokens are missing: when they came is unknown", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), does(4, capture.Server, "gap 900"), server(5, chunk(stops)+chunk(usage(5, 7))+last),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 5 finished "stop" in=5 cached=0 out=7 later=0 torn any_end any_later
`},
	{"an answer and the next request are missing: whose the next answer is is unknown", false, []step{
		client(1, post(chat, "{}")), does(3, capture.Client, "gap 100"), does(4, capture.Server, "gap 900"), server(4, chunk(word("a"))), server(5, chunk(stops)+last),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
`},
	{"the same, and its head is whole", false, []step{
		client(1, post(chat, "{}")), does(3, capture.Client, "gap 100"), does(4, capture.Server, "gap 900"), server(4, answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 1 unseen "its end was not received" in=0 cached=0 out=0 later=0 at_least any_end
`},
	{"a WebSocket", false, []step{
		client(1, "GET /v1/realtime HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), server(2, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
		client(3, post(chat, "{}")), server(4, "\x81\x05hello"), does(5, 0, "closed"),
	}, `
log WebSocket or another protocol on port 8000: what follows an upgrade is not read
`},
	{"a stream of an unknown form", false, []step{client(1, post("/speak", "{}")), server(2, chunkedHead(sse)+chunk("data: x\n\n")+last)}, `
log streams on /speak are not measured: their format is not known
`},
	{"the client has left, and the capture ends before the server notices", false, []step{
		client(1, post(chat, "{}")), does(5, capture.Client, "close"), does(90, 0, "stopped"),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 5 cancelled "cancelled" in=0 cached=0 out=0 later=0
`},
	{"the same inside a stream", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), does(5, capture.Client, "close"), server(6, chunk(word("b"))), does(90, 0, "stopped"),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 6 token n=1 index=1 choice=0
1 5 cancelled "cancelled" in=0 cached=0 out=2 later=1
`},
	{"TLS", false, []step{client(1, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), server(2, "\x16\x03\x03\x00\x7a")}, `
log TLS on port 8000: nothing to see; tap behind the proxy that ends it
`},
	{"TLS from its middle on", true, []step{server(2, "\x17\x03\x03\x00\x7aabc")}, `
log TLS on port 8000: nothing to see; tap behind the proxy that ends it
`},
	{"HTTP/2", false, []step{client(1, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), server(2, "\x00\x00\x12\x04")}, `
log HTTP/2 (as of gRPC) on port 8000 is not read: let clients use HTTP/1.1, or send them through llmtop proxy
`},
	{"something else", false, []step{server(1, "SSH-2.0-OpenSSH_9.6\r\n"), client(2, "SSH-2.0-x\r\n")}, `
log what is sent on port 8000 is not HTTP/1.1
`},

	{"from the middle of a connection on", true, []step{
		server(1, "garbage"), client(2, post(chat, "{}")), server(3, answer("200 OK", full)),
	}, `
1 2 queued chat group=10.0.0.7 model= max=0
1 3 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"from the middle of a stream on", true, []step{
		server(1, `"}}]}`+"\n\n\r\n"), server(2, chunk(word("x"))), server(3, chunk(word("y"))), server(5, chunk(stops)+chunk(usage(5, 30))+chunk(done)+last),
		client(6, post(chat, "{}")), server(7, answer("200 OK", full)),
	}, `
1 2 running chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0 lost
1 3 token n=1 index=1 choice=0
1 5 finished "stop" in=5 cached=0 out=30 later=0 torn any_later
2 6 queued chat group=10.0.0.7 model= max=0
2 7 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"from between a request and its answer on", true, []step{server(1, chunkedHead(sse)), server(2, chunk(word("x"))), server(3, chunk(stops)+chunk(usage(5, 1))+chunk(done)+last)}, `
1 2 running chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0 lost
1 3 finished "stop" in=5 cached=0 out=1 later=0 torn any_later
`},
	{"a hole in a chunk, and one between chunks", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)), server(3, chunk(word("a"))), does(4, capture.Server, "gap 40"), server(4, chunk(word("b"))[40:]),
		server(5, chunk(word("c"))), does(6, capture.Server, "gap 500"), server(6, chunk(word("d"))), server(7, chunk(word("e"))),
		server(8, chunk(stops)+chunk(usage(5, 9))+chunk(done)+last), client(9, post(chat, "{}")), server(10, answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 3 token n=1 index=0 choice=0
1 5 token n=1 index=1 choice=0 lost
1 6 token n=1 index=2 choice=0 lost
1 7 token n=1 index=3 choice=0
1 8 finished "stop" in=5 cached=0 out=9 later=0 torn any_later
2 9 queued chat group=10.0.0.7 model= max=0
2 10 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"a hole before the first token", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)), does(3, capture.Server, "gap 100"), server(4, chunk(word("c"))), server(5, chunk(stops)+last),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 4 token n=1 index=0 choice=0 lost
1 5 finished "stop" in=0 cached=0 out=1 later=0 torn at_least any_later
`},
	{"a hole over the end of an answer and the next request's answer", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), client(3, post(chat, `{"model":"b"}`)), does(4, capture.Server, "gap 900"),
		server(4, chunk(word("x"))), server(5, chunk(stops)+chunk(usage(5, 7))+last),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
2 3 queued chat group=10.0.0.7 model=b max=0
1 2 unseen "its end was not received" in=0 cached=0 out=1 later=0 at_least any_end
2 4 token n=1 index=0 choice=0 lost
2 5 finished "stop" in=5 cached=0 out=7 later=0 torn any_later
`},
	{"a request that was not captured", false, []step{
		client(1, post(chat, "{}")), server(2, answer("200 OK", full)), server(4, answer("200 OK", full)), does(5, capture.Client, "gap 100"), client(5, post(chat, "{}")), server(6, answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 finished "stop" in=4 cached=0 out=2 later=0
2 5 queued chat group=10.0.0.7 model= max=0
2 6 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"a hole in a request's body", false, []step{
		client(1, post(chat, `{"model":"m","prompt":"0123456789"}`)[:110]), does(2, capture.Client, "gap 10"), client(3, post(chat, `{"model":"m","prompt":"0123456789"}`)[120:]), server(5, answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 5 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"a hole in a document", false, []step{
		client(1, post(chat, "{}")), server(2, answer("200 OK", full)[:100]), does(3, capture.Server, "gap 20"), server(3, answer("200 OK", full)[120:]),
		client(4, post(chat, "{}")),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 3 finished "" in=0 cached=0 out=0 later=0 torn at_least any_later
2 4 queued chat group=10.0.0.7 model= max=0
`},
	{"chunk sizes that lie", false, []step{
		client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))+"5\r\n"+word("b")+"\r\n"), server(3, chunk(word("c"))), client(4, post(chat, "{}")), server(5, answer("200 OK", full)),
	}, `
1 1 queued chat group=10.0.0.7 model= max=0
1 2 token n=1 index=0 choice=0
1 2 unseen "its end was not received" in=0 cached=0 out=1 later=0 torn at_least any_end any_later
2 4 queued chat group=10.0.0.7 model= max=0
2 5 finished "stop" in=4 cached=0 out=2 later=0
`},
	{"two lengths", false, []step{
		client(1, "POST "+chat+" HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), client(2, post(chat, "{}")), server(5, answer("200 OK", full)),
	}, `
log what is sent on port 8000 is not HTTP/1.1
`},
}

// TestBounds checks that what hostile ends send is bounded: heads and messages that do not end, requests without answers,
// and compressed bytes that become many.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	bomb := zipped("data: " + strings.Repeat("0", 64<<20))
	for name, steps := range map[string][]step{
		"a head":              {client(1, "POST "+chat+" HTTP/1.1\r\nX: "), client(2, long), client(3, long)},
		"a head of an answer": {client(1, post(chat, "{}")), server(1, "HTTP/1.1 200 OK\r\nX: "), server(2, long), server(3, long)},
		"headers":             {client(1, "POST "+chat+" HTTP/1.1\r\n"+strings.Repeat("a:b\r\n", 2000)+"\r\n")},
		"a line of a chunk":   {client(1, post(chat, "{}")), server(1, chunkedHead(sse)+"5;"), server(2, long)},
		"a trailer":           {client(1, post(chat, "{}")), server(1, chunkedHead(sse)+"0\r\n"), server(2, long)},
		"requests":            {client(1, strings.Repeat("GET / HTTP/1.1\r\n\r\n", 10_000))},
		"a message":           {client(1, post(chat, "{}")), server(1, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: "), server(2, long), server(3, long)},
		"a bomb":              {client(1, post(chat, "{}")), server(2, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(bomb), bomb))},
		"a huge chunk":        {client(1, post(chat, "{}")), server(1, chunkedHead(sse)+"7fffffffffffffff\r\nabc"), server(2, long)},
		"a number":            {client(1, post(chat, "{}")), server(1, chunkedHead(sse)+"ffffffffffffffff\r\nabc"), server(2, long)},
	} {
		tap, _ := newTap(t, Options{Port: 8000})
		c := tap.open(flow()).(*conn)
		play(c, steps, whole)
		if most := 3 * len(long); tap.held > most || len(c.waiting) > maxWaiting {
			t.Errorf("%s: %d bytes are held, %d requests wait", name, tap.held, len(c.waiting))
		}
		c.End(began, capture.Abandoned)
		if tap.held != 0 || tap.live != 0 || tap.packed != 0 {
			t.Errorf("%s: at the end %d bytes are held, %d requests run, %d are compressed", name, tap.held, tap.live, tap.packed)
		}
	}
}

// TestDialogues checks the events of dialogues, however their bytes are cut.
func TestDialogues(t *testing.T) {
	for _, d := range dialogues {
		t.Run(d.name, func(t *testing.T) {
			holes := d.part
			for _, s := range d.steps {
				holes = holes || strings.HasPrefix(s.does, "gap") || strings.Contains(d.name, "lie")
			}
			run := func(cut func(int) int) string {
				tap, log := newTap(t, Options{Port: 8000})
				f := flow()
				f.Whole = !d.part
				play(tap.open(f), d.steps, cut)
				if end := d.steps[len(d.steps)-1].does; end != "" && end != "close" && (tap.held != 0 || tap.live != 0 && end != "stopped") {
					t.Errorf("%d bytes are held, %d requests run", tap.held, tap.live)
				}
				return outline(log.All())
			}
			want := strings.TrimPrefix(d.want, "\n")
			if got := run(whole); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if holes {
				return // what follows a hole is found by how it was sent
			}
			for i, s := range d.steps {
				for at := 1; at < len(s.text); at++ {
					if line := strings.Index(s.text, "\n"); d.name == "TLS" && at < 3 || strings.HasPrefix(d.name, "a body that") && i == 2 && at <= line {
						continue // of fewer bytes it is not certain
					}
					got := run(func(j int) int {
						if i == j {
							return at
						}
						return 0
					})
					if got != want {
						t.Fatalf("step %d cut at %d: got\n%swant\n%s", i, at, got, want)
					}
				}
			}
		})
	}
}

// TestWarningsCount checks that warnings say what they count.
func TestWarningsCount(t *testing.T) {
	tap, _ := newTap(t, Options{Port: 8000})
	for range 2 {
		play(tap.open(flow()), []step{client(1, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")}, whole)
	}
	play(tap.open(flow()), []step{client(1, post(chat, "{}")), server(2, chunkedHead(sse)+chunk(word("a"))), server(3, chunk(stops)+last)}, whole)
	want := []string{
		"TLS on port 8000: nothing to see; tap behind the proxy that ends it (connections: 2)",
		answers.MessageIsToken + " (requests: 1)",
	}
	if got := tap.Warnings(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
