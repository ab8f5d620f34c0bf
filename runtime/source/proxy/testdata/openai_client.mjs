// Makes requests with the openai client and prints, as JSON, what it saw: node openai_client.mjs FOLDER BASE_URL
import { pathToFileURL } from 'node:url';

const [folder, baseURL] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(`${folder}/node_modules/openai/index.mjs`));
const client = new OpenAI({ baseURL, apiKey: 'sk-secret-0815', maxRetries: 1 });
const messages = [{ role: 'user', content: 'asked' }];
const seen = {};

const streamed = await client.chat.completions.create({ model: 'm', messages, stream: true, stream_options: { include_usage: true } });
seen.stream = [];
for await (const chunk of streamed) seen.stream.push([chunk.choices[0]?.delta?.content ?? null, chunk.usage?.completion_tokens ?? null]);

const whole = await client.chat.completions.create({ model: 'm', messages });
seen.whole = [whole.choices[0].message.content, whole.usage.completion_tokens];

seen.response = [];
for await (const event of await client.responses.create({ model: 'm', input: 'asked', stream: true })) seen.response.push([event.type, event.delta ?? null]);

const left = await client.chat.completions.create({ model: 'endless', messages, stream: true });
for await (const chunk of left) {
  seen.left = chunk.choices[0].delta.content;
  left.controller.abort();
  break;
}

try {
  await client.chat.completions.create({ model: 'busy', messages });
} catch (error) {
  seen.busy = [error.constructor.name, error.status, error.message, error.headers.get('x-request-id')];
}
seen.models = (await client.models.list()).data.map((model) => model.id);
console.log(JSON.stringify(seen));
