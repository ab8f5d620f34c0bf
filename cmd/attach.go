package cmd

import (
	"github.com/llmtop/llmtop/cmd/watch"
	"github.com/spf13/cobra"
)

func newAttachCommand() *cobra.Command {
	var opts watch.Options
	c := &cobra.Command{
		Use:   "attach [ADDRESS...]",
		Short: "Watch running engines and inference servers",
		Long: `attach shows engines that other processes run. An ADDRESS is one of:

  unix:PATH, tcp:HOST:PORT     event socket: llmtop serve, llmtop run --listen, SDK emitters
  http://HOST:PORT, https://   server: llama.cpp, Ollama, vLLM, SGLang, TGI, TensorRT-LLM, LMDeploy
  HOST:PORT, PORT, pid:PID     the same, in short, or by a process of this machine
  NAME                         model, kind or program of an engine of llmtop discover, or the name of
                               an event socket, also of an engine that starts later
  prometheus+http://HOST:PORT  replicas that this Prometheus scrapes, up to hundreds

Without an address it watches all event sockets of your user on this machine, new ones included. It
reconnects when a connection breaks and keeps the data. When the engine of an event socket restarts,
the new process of its name takes its place. It only reads from servers; with --probe it
also sends requests. --otlp adds the traces that vLLM, SGLang and others send by OpenTelemetry.

--headless watches without a screen until interrupted, or as long as --for says, and reports. The time
for which it waits for a NAME does not count. Without an address it watches the only engine that
llmtop discover finds. Report files, such as --out FILE.json, do so without a terminal; with one they
are written at its end. A recording, --metrics-listen, --otlp-push and alerts in the config file need
no terminal either.`,
		Example: `  llmtop attach
  llmtop attach unix:/run/user/1000/llmtop/llmtop-4711.sock
  llmtop attach my-engine
  llmtop attach 8080
  llmtop attach http://127.0.0.1:8080 http://gpu1:8000 tcp:127.0.0.1:7070
  llmtop attach --for 60s --out report.json http://127.0.0.1:8000
  llmtop attach --otlp 127.0.0.1:4318
  llmtop attach prometheus+http://prometheus:9090 --match 'job="vllm"'`,
		RunE: func(c *cobra.Command, args []string) error {
			opts.Addresses = args
			opts.Stdout, opts.Notes = c.OutOrStdout(), c.ErrOrStderr()
			return opts.Run(c.Context())
		},
	}
	opts.Bind(c)
	return c
}
