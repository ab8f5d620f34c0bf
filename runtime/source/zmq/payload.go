package zmq

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/zmq/msgpack"
)

// published is the content of one message.
type published struct {
	stored, removed, cleared, tokens int   // blocks, blocks, times, tokens of the stored blocks
	pass                             *pass // nil: the message is about blocks
}

// pass holds the metrics of one forward pass.
type pass struct {
	event.Pass
	number           uint64
	took             time.Duration // 0: a heartbeat of an idle engine
	decodes, prefill int32
}

// read decodes a payload: a list is a batch of KV cache events, a map the metrics of a forward pass.
func read(payload []byte) (*published, error) {
	v, err := msgpack.Decode(payload)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []any:
		return readBlocks(v)
	case msgpack.Map:
		return readPass(v)
	}
	return nil, errors.New("neither a batch of KV events nor a forward pass")
}

// readBlocks reads [time, events, rank]. Each event is a list that starts with its type, or, from vLLM since 2026-06, a
// map.
func readBlocks(batch []any) (*published, error) {
	if len(batch) < 2 {
		return nil, errors.New("batch without events")
	}
	events, ok := batch[1].([]any)
	if !ok {
		return nil, errors.New("events are not a list")
	}
	out := &published{}
	for _, e := range events {
		kind, hashes, tokens, size, err := readBlock(e)
		if err != nil {
			return nil, err
		}
		switch kind {
		case "BlockStored":
			out.stored += hashes
			if tokens == 0 {
				tokens = hashes * size
			}
			out.tokens += tokens
		case "BlockRemoved":
			out.removed += hashes
		case "AllBlocksCleared":
			out.cleared++
		} // ignore newer kinds
	}
	return out, nil
}

// maxBlockSize is the largest block size accepted, in tokens.
const maxBlockSize = 1 << 20

// readBlock reads one event: its number of blocks, the number of tokens it lists, and the tokens per block. Token ids
// belong to prompts; they are counted and not kept.
func readBlock(e any) (kind string, hashes, tokens, size int, err error) {
	field := func(string, int) any { return nil }
	switch e := e.(type) {
	case msgpack.Map:
		field = func(name string, _ int) any { return e[name] }
	case []any:
		field = func(_ string, i int) any {
			if i < len(e) {
				return e[i]
			}
			return nil
		}
	}
	kind, ok := field("type", 0).(string)
	if !ok {
		return "", 0, 0, 0, errors.New("event without a type")
	}
	switch list := field("block_hashes", 1).(type) {
	case []any:
		hashes = len(list)
	case nil:
		if kind == "BlockStored" || kind == "BlockRemoved" {
			return "", 0, 0, 0, fmt.Errorf("%s without block_hashes", kind)
		}
	}
	if list, ok := field("token_ids", 3).([]any); ok && kind == "BlockStored" {
		tokens = len(list)
	}
	if n, ok := msgpack.Number(field("block_size", 4)); ok && n > 0 && n <= maxBlockSize {
		size = int(n)
	}
	return kind, hashes, tokens, size, nil
}

// longestPass is the longest duration accepted for a pass.
const longestPass = time.Hour

// readPass reads the metrics of a forward pass.
func readPass(m msgpack.Map) (*published, error) {
	scheduled, ok := m["scheduled_requests"].(msgpack.Map)
	wall, timed := msgpack.Number(m["wall_time"])
	if !ok || !timed {
		return nil, errors.New("map is not a forward pass")
	}
	queued, _ := m["queued_requests"].(msgpack.Map)
	p := &pass{}
	p.Worker, _ = m["worker_id"].(string)
	p.Worker = p.Worker[:min(len(p.Worker), 256)]
	p.Rank, p.Counter, p.Wall = reading(m, "dp_rank"), reading(m, "counter_id"), reading(m, "wall_time")
	p.Scheduled, p.Queued = load(scheduled), load(queued)
	if implausible(m, scheduled, queued) {
		return nil, errors.New("it has an implausible number")
	}
	p.number = uint64(whole(p.Counter, math.MaxInt64/2))
	p.took = time.Duration(min(max(wall, 0), longestPass.Seconds()) * float64(time.Second))
	p.decodes, p.prefill = int32(whole(p.Scheduled.Decodes, math.MaxInt32)), int32(whole(p.Scheduled.PrefillTokens, math.MaxInt32))
	return &published{pass: p}, nil
}

// implausible reports whether a number in one of the maps cannot have been measured.
func implausible(maps ...msgpack.Map) bool {
	for _, m := range maps {
		for _, v := range m {
			if n, ok := msgpack.Number(v); !ok && n != 0 {
				return true
			}
		}
	}
	return false
}

// reading returns a number of the message, or "not reported".
func reading(m msgpack.Map, name string) event.Reading {
	v, ok := msgpack.Number(m[name])
	if !ok {
		return event.Absent(event.NotReported)
	}
	return event.ReportedValue(v)
}

// whole returns a count between 0 and most, 0 if it is absent.
func whole(r event.Reading, most float64) int64 {
	if !r.OK() {
		return 0
	}
	return int64(min(max(r.V, 0), most))
}

func load(m msgpack.Map) event.PassLoad {
	return event.PassLoad{
		Prefills: reading(m, "num_prefill_requests"), PrefillTokens: reading(m, "sum_prefill_tokens"),
		PrefillVariance: reading(m, "var_prefill_length"), PrefillKV: reading(m, "sum_prefill_kv_tokens"),
		Decodes: reading(m, "num_decode_requests"), DecodeKV: reading(m, "sum_decode_kv_tokens"), DecodeVariance: reading(m, "var_decode_kv_tokens"),
	}
}
