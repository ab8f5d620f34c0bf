package wire

import "github.com/llmtop/llmtop/profiler/event"

// appendEngine appends the members of an engine. at is the time of the event: the member "wall" is the wall clock at
// that time.
func appendEngine(dst []byte, at event.Time, p *event.EngineInfo) []byte {
	dst = appendString(key(dst, "name"), p.Name)
	dst = number(word(dst, "version", p.Version), "pid", max(p.PID, 0))
	if p.Epoch != 0 {
		dst = appendTime(key(dst, "wall"), event.Time(event.Add(p.Epoch, int64(bounded(at)))))
	}
	if p.Device != (event.Device{}) {
		dst = append(key(dst, "device"), '{')
		dst = word(word(dst, "name", p.Device.Name), "kernels", p.Device.Kernels)
		dst = number(flag(dst, "host", p.Device.Host), "threads", max(p.Device.Threads, 0))
		dst = append(dst, '}')
	}
	dst = appendCaps(key(dst, "caps"), p.Caps)
	dst = number(dst, "slots", max(p.Slots, 0))
	if p.Pace > 0 && event.Plausible(p.Pace) {
		dst = appendFloat(key(dst, "pace"), p.Pace, 64)
	}
	dst = word(word(dst, "state", p.State.String()), "why", p.Reason)
	if p.Remote != (event.Remote{}) {
		dst = append(appendRemote(append(key(dst, "remote"), '{'), &p.Remote), '}')
	}
	return dst
}

func appendCaps(dst []byte, c event.Caps) []byte {
	dst = append(dst, '[')
	for i, name := range caps {
		if c.Has(1 << i) {
			if dst[len(dst)-1] != '[' {
				dst = append(dst, ',')
			}
			dst = appendString(dst, name)
		}
	}
	return append(dst, ']')
}

func appendRemote(dst []byte, r *event.Remote) []byte {
	dst = word(word(dst, "address", r.Address), "link", r.Link.String())
	dst = number(word(moment(dst, "since", r.Since), "why", r.Reason), "restarts", max(r.Restarts, 0))
	dst = number(dst, "missing", r.Missed)
	if r.Malformed > 0 {
		dst = appendCount(key(dst, "garbage"), r.Malformed)
	}
	return dst
}

// modelNumber is a number of a model with its name; whole or large is set.
type modelNumber struct {
	name  string
	whole *int
	large *int64
}

func modelNumbers(p *event.Model) [16]modelNumber {
	return [...]modelNumber{
		{"parameters", nil, &p.Parameters},
		{"active_parameters", nil, &p.Active},
		{"bytes", nil, &p.Bytes},
		{"layers", &p.Layers, nil},
		{"width", &p.Width, nil},
		{"heads", &p.Heads, nil},
		{"kv_heads", &p.KVHeads, nil},
		{"head_dim", &p.HeadDim, nil},
		{"vocabulary", &p.Vocab, nil},
		{"experts", &p.Experts, nil},
		{"experts_used", &p.ExpertsUsed, nil},
		{"feed_forward", &p.FeedForward, nil},
		{"context", &p.Context, nil},
		{"trained_context", &p.TrainContext, nil},
		{"kv_bytes", nil, &p.KVBytes},
		{"weight_bytes", nil, &p.WeightBytes},
	}
}

func appendModel(dst []byte, loadTime int64, p *event.Model) []byte {
	dst = number(dst, "dur", max(loadTime, 0))
	dst = word(word(dst, "name", p.Name), "path", p.Path)
	dst = word(word(dst, "architecture", p.Architecture), "quantisation", p.Quantisation)
	for _, n := range modelNumbers(p) {
		if n.whole != nil {
			dst = number(dst, n.name, max(*n.whole, 0))
		} else {
			dst = number(dst, n.name, max(*n.large, 0))
		}
	}
	return dst
}

// namedReading is a reading with its name.
type namedReading struct {
	name string
	r    *event.Reading
}

func loadReadings(p *event.PassLoad) []namedReading {
	return []namedReading{
		{"num_prefill_requests", &p.Prefills},
		{"sum_prefill_tokens", &p.PrefillTokens},
		{"var_prefill_length", &p.PrefillVariance},
		{"sum_prefill_kv_tokens", &p.PrefillKV},
		{"num_decode_requests", &p.Decodes},
		{"sum_decode_kv_tokens", &p.DecodeKV},
		{"var_decode_kv_tokens", &p.DecodeVariance},
	}
}

func passReadings(p *event.Pass) []namedReading {
	return []namedReading{{"dp_rank", &p.Rank}, {"counter_id", &p.Counter}, {"wall_time", &p.Wall}}
}

func appendReadings(dst []byte, list []namedReading) []byte {
	for _, n := range list {
		dst = appendReading(dst, n.name, *n.r)
	}
	return dst
}

// appendFields appends the readings of a row of the catalogue each.
func appendFields[T any](dst []byte, rows []event.Field[T], of *T) []byte {
	for i := range rows {
		dst = appendReading(dst, rows[i].Key, *rows[i].At(of))
	}
	return dst
}

func appendHost(dst []byte, p *event.Host) []byte {
	dst = number(dst, "interval", max(p.Interval, 0))
	dst = appendCores(appendCores(dst, "cores", p.Cores), "core_hz", p.Clocks)
	dst = word(flag(dst, "limited", p.Limited), "no_gpu", p.NoGPU)
	dst = appendFields(dst, event.MachineFields[:], p)
	dst = appendProcess(append(key(dst, "engine"), '{'), &p.Engine)
	dst = appendProcess(append(key(dst, "self"), '{'), &p.Self)
	if len(p.GPUs) > 0 {
		dst = append(key(dst, "gpus"), '[')
		for i := range p.GPUs[:min(len(p.GPUs), MaxCount)] {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = word(append(dst, '{'), "name", p.GPUs[i].Name)
			dst = append(appendFields(dst, event.GPUFields[:], &p.GPUs[i]), '}')
		}
		dst = append(dst, ']')
	}
	return dst
}

// appendCores appends one number per core.
func appendCores(dst []byte, name string, list []float64) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(key(dst, name), '[')
	for i, v := range list[:min(len(list), MaxBatch)] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendFloat(dst, v, 64)
	}
	return append(dst, ']')
}

func appendProcess(dst []byte, p *event.Process) []byte {
	dst = number(dst, "pid", max(p.PID, 0))
	return append(appendFields(dst, event.ProcessFields[:], p), '}')
}

// appendPass appends forward-pass metrics as bare numbers, without their origin.
func appendPass(dst []byte, p *event.Pass) []byte {
	dst = word(append(dst, '{'), "worker_id", p.Worker)
	dst = appendBareReadings(dst, passReadings(p))
	dst = append(appendBareReadings(append(key(dst, "scheduled_requests"), '{'), loadReadings(&p.Scheduled)), '}')
	dst = append(appendBareReadings(append(key(dst, "queued_requests"), '{'), loadReadings(&p.Queued)), '}')
	return append(dst, '}')
}

func appendBareReadings(dst []byte, list []namedReading) []byte {
	for _, n := range list {
		if n.r.OK() {
			dst = appendFloat(key(dst, n.name), n.r.V, 64)
		}
	}
	return dst
}
