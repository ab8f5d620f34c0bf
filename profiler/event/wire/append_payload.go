package wire

import "github.com/llmtop/llmtop/profiler/event"

// appendFields appends the readings of a row of the catalogue each.
func appendFields[T any](dst []byte, rows []event.Field[T], of *T) []byte {
	for i := range rows {
		dst = appendReading(dst, rows[i].Key, *rows[i].At(of))
	}
	return dst
}

func appendHost(dst []byte, p *event.Host) []byte {
	dst = number(dst, "interval", max(p.Interval, 0))
	dst = appendNumbers(appendNumbers(appendNumbers(dst, "cores", p.Cores), "core_hz", p.Clocks), "read_bandwidth", p.ReadBandwidth)
	if len(p.ExpertsCached) > 0 {
		dst = appendUints(key(dst, "experts_cached"), p.ExpertsCached...)
	}
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

func appendUsage(dst []byte, p *event.Usage) []byte {
	return appendFields(number(dst, "interval", max(p.Interval, 0)), event.UsageFields[:], p)
}

// appendNumbers appends a list of numbers.
func appendNumbers(dst []byte, name string, list []float64) []byte {
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
	if p.Interval > 0 {
		dst = number(dst, "interval", p.Interval)
	}
	return append(appendFields(dst, event.ProcessFields[:], p), '}')
}
