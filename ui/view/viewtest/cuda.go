package viewtest

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// CUDA plays a process whose calls of CUDA are counted for a while: one that links llama.cpp and has requests, or another
// one.
func CUDA(requests bool) *Scene {
	s, v := NewScene(), event.MeasuredValue
	info := &event.EngineInfo{Name: "python3", PID: 4711, State: event.EngineReady, Caps: event.CapHost, Device: event.Device{Name: "NVIDIA H200"}}
	info.Reason = "all calls of CUDA counted, requests not seen, probes in process 4711"
	if requests {
		info.Name, info.Reason = "llama.cpp", "all calls of CUDA counted, probes in process 4711"
		info.Caps |= event.CapStages | event.CapTokens | event.CapKV | event.CapSteps | event.CapQueue
		info.Device.HostExperts = true
	}
	s.Emit(event.Event{Kind: event.KindEngine, Data: info})
	for second := range 20 {
		from := s.Now
		if requests && second%2 == 0 {
			s.copied(event.RequestID(second/2 + 1))
		}
		s.Now = from + event.Time(metric.Second.Span())
		wave := float64(second%5) / 10
		s.Emit(event.Event{Kind: event.KindHost, Data: &event.Host{
			Interval: int64(metric.Second.Span()), Cores: []float64{.4, .2}, CPU: v(.3), MemUsed: v(12e9), MemTotal: v(64e9),
			GPUs: []event.GPU{{Name: "NVIDIA H200", Util: v(.5 + wave/2), MemUsed: v(20e9), MemTotal: v(141e9), EngineMem: v(18e9)}},
			Engine: event.Process{
				PID: 4711, CPU: v(1), RSS: v(3e9), Launches: v(21000 - 9000*wave), Graphs: v(0), ToGPU: v(1.9e9 + 1e9*wave), FromGPU: v(32e6),
				GPUWait: v(.4 + wave), Copying: v(.2), LaunchGap: v(.3 - wave/2), Counted: v(.25),
			},
		}})
	}
	return s
}

// copied plays a request with copies to and from the device; of its last tokens the calls are not counted.
func (s *Scene) copied(id event.RequestID) {
	v := event.MeasuredValue
	s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{}})
	s.Now += 2 * Millisecond
	s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	began, length := s.Now, event.Time(60+10*(id%3))*Millisecond
	prompt := &event.Calls{
		Launches: v(101), Graphs: v(1), To: v(35.4e6), From: v(128000), ToTime: v(18e6), FromTime: v(6e6), Wait: v(20e6), Gap: v(4e6), Pass: v(float64(length)),
	}
	at := func(t event.Time, e event.Event) {
		s.Now = t
		e.Req, e.Layer = id, -1
		s.Emit(e)
	}
	at(began+length, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Dur: int64(length), N: 64})
	at(began+20*Millisecond, event.Event{Kind: event.KindStage, Stage: event.StageHostToDevice, Dur: 18e6, Data: prompt})
	at(began+length-Millisecond, event.Event{Kind: event.KindStage, Stage: event.StageDeviceToHost, Dur: 6e6, Data: prompt})
	s.Now = began + length
	s.steps++
	s.Emit(event.Event{Kind: event.KindStep, Step: s.steps, Dur: int64(length), Prompt: 64, Data: prompt})
	for i := range 20 {
		if i > 0 {
			s.Now, s.steps = s.Now+30*Millisecond, s.steps+1
			step := event.Event{Kind: event.KindStep, Step: s.steps, Dur: 28e6, N: 1}
			if i < 15 {
				step.Data = &event.Calls{
					Launches: v(337), Graphs: v(0), To: v(6.29e6), From: v(6.42e6), ToTime: v(5e6), FromTime: v(3.7e6), Wait: v(8.4e6), Gap: v(9e6), Pass: v(28e6),
				}
			}
			s.Emit(step)
		}
		s.Emit(event.Event{Kind: event.KindToken, Req: id, ID: int32(100 + i), Index: int32(i), N: 1, Step: s.steps})
	}
	s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{Prompt: 64, Generated: 20}})
}
