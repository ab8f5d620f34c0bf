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
  NAME                         an engine by its name in llmtop discover, or one that starts later
  prometheus+http://HOST:PORT  replicas that this Prometheus scrapes, up to hundreds

Without an address it watches all event sockets of your user on this machine, new ones included;
with --headless, the only engine that llmtop discover finds. When the connection breaks it keeps the
data and connects again, also to the new process of an engine that restarts. It only reads from
servers. --otlp adds traces that servers send.

--headless watches until interrupted, or as long as --for says, and reports. Files of --out need no
screen either: on a terminal they are written at its end, without one they end with --for or Ctrl-C.`,
		Example: `  llmtop attach
  llmtop attach unix:/run/user/1000/llmtop/llmtop-4711.sock
  llmtop attach my-engine
  llmtop attach 8080
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
