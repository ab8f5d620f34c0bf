package compat

import (
	"math"
	"testing"
)

// chat is a recorded chat response: role at 0.1 s, reasoning at 0.2, text at 0.3 and (two tokens) 0.5, an empty last
// message with the reason at 0.6, the usage at 0.65, the end mark at 0.7. It generated 4 tokens.
func chat(began float64) Stream {
	at := func(t float64, m Message) Message {
		m.At = began + t
		return m
	}
	return Stream{
		Began: began, Chat: true, Prompt: 10, Generated: 4,
		Messages: []Message{
			at(0.1, Message{Choices: true}),
			at(0.2, Message{Choices: true, Reasoning: true}),
			at(0.3, Message{Choices: true, Output: true}),
			at(0.5, Message{Choices: true, Output: true}),
			at(0.6, Message{Choices: true}),
			at(0.65, Message{}),
			at(0.7, Message{Done: true}),
		},
	}
}

// completion is a response without a role: text at 0.4 and 1.0 s, an empty last message at 1.2, the usage at 1.3. It
// generated 3 tokens.
func completion(began float64) Stream {
	return Stream{
		Began: began, Prompt: 20, Generated: 3,
		Messages: []Message{
			{At: began + 0.4, Choices: true, Output: true},
			{At: began + 1, Choices: true, Output: true},
			{At: began + 1.2, Choices: true},
			{At: began + 1.3},
			{At: began + 1.35, Done: true},
		},
	}
}

// expect compares rows with values computed by hand.
func expect(t *testing.T, rows []Row, want map[string]float64) {
	t.Helper()
	got := map[string]float64{}
	for _, r := range rows {
		if _, twice := got[r.Name]; twice {
			t.Errorf("%s appears twice", r.Name)
		}
		got[r.Name] = r.Value
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || math.Abs(g-v) > 1e-9*max(1, math.Abs(v)) {
			t.Errorf("%s: %v, want %v", name, g, v)
		}
	}
}

// TestVLLMChat checks that the role starts the text, the empty last message ends it, and the latency includes the
// usage.
func TestVLLMChat(t *testing.T) {
	expect(t, vllm([]Run{{Streams: []Stream{chat(5)}, Duration: 2}}), map[string]float64{
		"Successful requests": 1, "Failed requests": 0, "Benchmark duration (s)": 2, "Total input tokens": 10, "Total generated tokens": 4,
		"Request throughput (req/s)": 0.5, "Output token throughput (tok/s)": 2, "Total Token throughput (tok/s)": 7,
		"Mean TTFT (ms)": 100,
		"Mean ITL (ms)":  125, // 100, 100, 200, 100
		"P99 ITL (ms)":   100 + 100*0.97,
		"Mean E2EL (ms)": 650, "Mean TPOT (ms)": 550.0 / 3,
		"Peak output token throughput (tok/s)": 5, // messages with choices, all within the first second
		"Peak concurrent requests":             1,
	})
}

// TestVLLMChatCountsFromAnyMessage checks that a message without choices in the middle of a chat restarts the clock of
// the next gap.
func TestVLLMChatCountsFromAnyMessage(t *testing.T) {
	st := Stream{Chat: true, Generated: 2, Messages: []Message{
		{At: 1, Choices: true, Output: true}, {At: 1.6}, {At: 2, Choices: true, Output: true},
	}}
	expect(t, vllm([]Run{{Streams: []Stream{st}, Duration: 2}}), map[string]float64{"Mean ITL (ms)": 400})
	st.Chat = false
	expect(t, vllm([]Run{{Streams: []Stream{st}, Duration: 2}}), map[string]float64{"Mean ITL (ms)": 1000})
}

// TestVLLMCompletion checks that the latency ends with the last message with choices, and that a request of one token
// has no TPOT.
func TestVLLMCompletion(t *testing.T) {
	one := completion(1)
	one.Generated = 1
	expect(t, vllm([]Run{{Streams: []Stream{completion(0), one, {Failed: true}, {}}, Duration: 4}}), map[string]float64{
		"Successful requests": 2, "Failed requests": 2,
		"Mean TTFT (ms)": 400, "Mean E2EL (ms)": 1200, "Mean TPOT (ms)": 400, "Mean ITL (ms)": 400, // 600, 200 of each
		"Total generated tokens": 4, "Total input tokens": 40,
		"Peak output token throughput (tok/s)": 3, // in the second from 1 on: 1.0 and 1.2 of the first, 1.4 of the second
		"Peak concurrent requests":             2,
	})
}

// TestSGLang checks that only text counts and that the latency includes the end mark.
func TestSGLang(t *testing.T) {
	expect(t, sglang([]Run{{Streams: []Stream{chat(0)}, Duration: 1}, {Streams: []Stream{completion(0)}, Duration: 3}}), map[string]float64{
		"Successful requests": 2, "Benchmark duration (s)": 4, "Input token throughput (tok/s)": 7.5, "Output token throughput (tok/s)": 7.0 / 4,
		"Mean TTFT (ms)": 300, "Median TTFT (ms)": 300, "P99 TTFT (ms)": 200 + 200*0.99,
		"Mean E2E Latency (ms)": (700 + 1350) / 2.0, "P90 E2E Latency (ms)": 700 + 650*0.9,
		"Mean TPOT (ms)": (500.0/3 + 950.0/2) / 2,
		"Mean ITL (ms)":  (100 + 200 + 600) / 3.0, "Max ITL (ms)": 600, "P95 ITL (ms)": 200 + 400*0.9,
		"Concurrency": 2.05 / 4,
	})
}

// TestAIPerf checks that reasoning counts for the first token but not for the first output, that the latency ends with
// the last text, that ITL is the mean of a request, and that the duration runs from the first request to the last text.
func TestAIPerf(t *testing.T) {
	expect(t, aiperf([]Run{{Streams: []Stream{chat(1), completion(2), {Failed: true}}, Duration: 9}}), map[string]float64{
		"Time to First Token (ms) avg": 300, "Time to First Token (ms) std": 100, "Time to First Token (ms) p90": 380,
		"Time to Second Token (ms) min": 100, "Time to Second Token (ms) max": 600,
		"Time to First Output Token (ms) min": 300,
		"Request Latency (ms) avg":            750,
		"Inter Token Latency (ms) min":        100, "Inter Token Latency (ms) max": 300,
		"Output Token Throughput Per User (tokens/sec/user) max": 10,
		"Prefill Throughput Per User (tokens/sec/user) avg":      50,
		"Output Sequence Length (tokens) avg":                    3.5, "Input Sequence Length (tokens) avg": 15,
		"Output Token Throughput (tokens/sec)": 3.5, // 7 in the 2 s from 1 to 3
		"Request Throughput (requests/sec)":    1, "Request Count (requests)": 2,
	})
}

// TestNoStreams checks that the result is zeros, as in the tools, and no NaN.
func TestNoStreams(t *testing.T) {
	for _, tool := range Tools() {
		for _, runs := range [][]Run{nil, {{}}, {{Streams: []Stream{{Failed: true}, {}}}}} {
			for _, r := range tool.Rows(runs) {
				if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
					t.Errorf("%s: %s is %v", tool.Name, r.Name, r.Value)
				}
			}
		}
	}
}

func TestByName(t *testing.T) {
	for _, tool := range Tools() {
		if got, ok := ByName(tool.Name); !ok || got.Full != tool.Full {
			t.Errorf("%s: %+v, %v", tool.Name, got, ok)
		}
	}
	if _, ok := ByName("genai"); ok || Names() != "vllm, sglang, aiperf" {
		t.Errorf("names are %s", Names())
	}
}
