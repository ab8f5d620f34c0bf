package wire

import "github.com/llmtop/llmtop/profiler/event"

// namedReading is a reading with its name.
type namedReading struct {
	name string
	r    *event.Reading
}

func hostReadings(p *event.Host) []namedReading {
	return []namedReading{
		{"cpu", &p.CPU},
		{"hz", &p.Frequency},
		{"load1", &p.Load1},
		{"mem_total", &p.MemTotal},
		{"mem_used", &p.MemUsed},
		{"copy_bandwidth", &p.CopyBandwidth},
		{"cpu_limit", &p.CPULimit},
		{"throttled", &p.Throttled},
		{"net_in", &p.Received},
		{"net_out", &p.Sent},
		{"cpu_pressure", &p.CPUPressure},
		{"mem_pressure", &p.MemPressure},
		{"io_pressure", &p.IOPressure},
		{"power", &p.Power},
		{"model_bytes", &p.ModelBytes},
		{"model_cached", &p.ModelCached},
	}
}

func processReadings(p *event.Process) []namedReading {
	return []namedReading{
		{"cpu", &p.CPU},
		{"run_wait", &p.RunWait},
		{"rss", &p.RSS},
		{"peak", &p.Peak},
		{"read", &p.Read},
		{"write", &p.Write},
		{"read_ops", &p.ReadOps},
		{"write_ops", &p.WriteOps},
		{"read_sum", &p.ReadSum},
		{"write_sum", &p.WriteSum},
		{"pss", &p.PSS},
		{"faults", &p.Faults},
		{"minor_faults", &p.MinorFaults},
		{"voluntary", &p.Voluntary},
		{"involuntary", &p.Involuntary},
		{"threads", &p.Threads},
		{"outside", &p.OutsideEngine},
		{"gc_pause", &p.GCPause},
		{"gc_count", &p.GCCount},
	}
}

func gpuReadings(p *event.GPU) []namedReading {
	return []namedReading{
		{"util", &p.Util},
		{"mem_used", &p.MemUsed},
		{"mem_total", &p.MemTotal},
		{"power", &p.Power},
		{"temperature", &p.Temperature},
		{"hz", &p.Clock},
	}
}

func appendReadings(dst []byte, list []namedReading) []byte {
	for _, n := range list {
		dst = appendReading(dst, n.name, *n.r)
	}
	return dst
}

func appendHost(dst []byte, p *event.Host) []byte {
	dst = number(dst, "interval", max(p.Interval, 0))
	dst = appendCores(appendCores(dst, "cores", p.Cores), "core_hz", p.Clocks)
	dst = word(flag(dst, "limited", p.Limited), "no_gpu", p.NoGPU)
	dst = appendReadings(dst, hostReadings(p))
	dst = appendProcess(append(key(dst, "engine"), '{'), &p.Engine)
	dst = appendProcess(append(key(dst, "self"), '{'), &p.Self)
	if len(p.GPUs) > 0 {
		dst = append(key(dst, "gpus"), '[')
		for i := range p.GPUs[:min(len(p.GPUs), MaxCount)] {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = word(append(dst, '{'), "name", p.GPUs[i].Name)
			dst = append(appendReadings(dst, gpuReadings(&p.GPUs[i])), '}')
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
	return append(appendReadings(dst, processReadings(p)), '}')
}
