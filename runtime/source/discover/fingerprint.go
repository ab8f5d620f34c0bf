package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// maxAnswer limits the size of one answer, in bytes.
const maxAnswer = 2 << 20

// identify asks the server at http://HOST:PORT for its identity, with read-only requests, and adds rates for servers that it
// has queried before. It sends no key, because the listener is unknown. awake: its models are known to never sleep. It fails
// if the server does not answer in time.
func (w *Watch) identify(ctx context.Context, base string, awake bool) (Identity, error) {
	c, err := fetch.New(base, fetch.Options{MaxBytes: maxAnswer})
	if err != nil {
		return Identity{}, err
	}
	defer c.Close()
	kind, info, err := identify.Identify(ctx, c)
	id := Identity{Kind: kind, Version: info.Version, NeedsKey: info.NeedsKey, Model: modelOf(info.Models)}
	var refused *fetch.StatusError
	switch {
	case errors.As(err, &refused), errors.Is(err, identify.ErrNoEngine):
		return id, nil
	case err != nil:
		return id, err
	}
	if !id.NeedsKey {
		id.Load, id.Progress = w.loadOf(ctx, c, kind, &info, awake)
	}
	return id, nil
}

// modelOf names the loaded model, and the number of others.
func modelOf(models []identify.Model) string {
	name, more := "", 0
	for _, m := range models {
		switch {
		case !m.Loaded || m.Name == "":
		case name == "":
			name = fileName(m.Name)
		default:
			more++
		}
	}
	if more > 0 {
		name += " and " + plural(more, "other", "others")
	}
	return name
}

// loadOf returns the load, if the engine reports it for one more request.
func (w *Watch) loadOf(ctx context.Context, c *fetch.Client, kind identify.Kind, info *identify.Info, awake bool) (Load, Progress) {
	switch {
	case kind == identify.Llama && info.Slots && !info.Router && (!info.Sleeps || awake): // otherwise that may wake its model
		return slotsLoad(ctx, c)
	case kind == identify.SGLang:
		return sglangLoad(ctx, c), nil
	case info.MetricsPath != "" && gather.Supports(kind) && kind != identify.Llama: // llama.cpp's metrics restart with each read
		return w.metricsLoad(ctx, c, kind, info.MetricsPath), nil
	}
	return Load{}, nil
}

// slotsLoad counts llama.cpp's busy slots, and their generated tokens.
func slotsLoad(ctx context.Context, c *fetch.Client) (l Load, p Progress) {
	var slots []struct {
		ID   int   `json:"id"`
		Task int64 `json:"id_task"`
		Busy bool  `json:"is_processing"`
		Next next  `json:"next_token"`
	}
	if c.JSON(ctx, "/slots", &slots) != nil {
		return l, nil
	}
	busy := 0
	p = Progress{}
	for _, s := range slots {
		if s.Busy {
			busy++
			p[fmt.Sprint(s.ID, "/", s.Task)] = s.Next.Decoded
		}
	}
	l.Running = event.ReportedValue(float64(busy))
	return l, p
}

// next is the state of a slot's next token: an object or an array of one, depending on the build.
type next struct {
	Decoded float64 `json:"n_decoded"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *next) UnmarshalJSON(text []byte) error {
	type plain next
	if len(text) > 0 && text[0] == '[' {
		var several []plain
		err := json.Unmarshal(text, &several)
		if len(several) > 0 {
			*n = next(several[0])
		}
		return err
	}
	return json.Unmarshal(text, (*plain)(n))
}

// sglangLoad sums up the loads of SGLang's ranks.
func sglangLoad(ctx context.Context, c *fetch.Client) (l Load) {
	var answer struct {
		Loads []struct {
			Running *float64 `json:"num_running_reqs"`
			Waiting *float64 `json:"num_waiting_reqs"`
			Decode  *float64 `json:"gen_throughput"`
		} `json:"loads"`
	}
	if c.JSON(ctx, "/v1/loads?include=core", &answer) != nil {
		return l
	}
	for _, rank := range answer.Loads {
		l.Running = plus(l.Running, rank.Running)
		l.Waiting = plus(l.Waiting, rank.Waiting)
		l.Decode = plus(l.Decode, rank.Decode)
	}
	return l
}

// plus adds a reported value to a sum.
func plus(sum event.Reading, v *float64) event.Reading {
	if v == nil || !event.PlausibleReading(*v) {
		return sum
	}
	return event.ReportedValue(sum.V + *v)
}
