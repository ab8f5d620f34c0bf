import llmtop, work

top = llmtop.serve("my-engine", model={"name": "tiny"})
while work.goes_on():
    with top.request(prompt_tokens=40) as r:
        work.prefill(40)
        for _ in range(30):
            r.token(work.decode())
top.close()
