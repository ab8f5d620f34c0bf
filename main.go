// llmtop is a live profiler for LLM inference in the terminal.
package main

import "github.com/llmtop/llmtop/cmd"

func main() { cmd.Main() }
