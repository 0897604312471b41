/** Writes answers of every kind, typed by the specification's interfaces, as JSON to the standard output. */

import type { ContentSegment, IAgentContext, IProvider, ITool, ProviderResponse } from './interfaces.ts';

declare const console: { log(text: string): void };

const say = (text: string): ContentSegment => ({ type: 'text', text });
const call = (name: string, args: any, id?: string): ContentSegment => ({
  type: 'tool_call',
  toolCall: id === undefined ? { name, args } : { id, name, args },
});
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** A newer protocol may have fields this one does not know. */
type Newer<T> = T & { [field: string]: unknown };
const newer: Newer<ProviderResponse> = {
  segments: [
    { type: 'text', text: 'from the future', mood: 'glad' } as Newer<ContentSegment>,
    { type: 'tool_call', toolCall: { id: 'n1', name: 'x', args: {}, priority: 3 } } as ContentSegment,
  ],
  metadata: { latency: 0.5 },
  version: [2, null, { a: true }],
};

const fixtures: { [name: string]: ProviderResponse } = {
  'nothing': { segments: [] },
  'text': { segments: [say('25°C, 晴れ')] },
  'empty text': { segments: [say('')] },
  'escapes': { segments: [say('"quoted" \\ \n\t \u0000 \u2028 😀')] },
  'call with id': { segments: [call('get_weather', { location: 'Taipei' }, 'call_1')] },
  'call without id': { segments: [call('get_weather', { location: 'Taipei' })] },
  'the example of the specification': {
    segments: [say('わかりました。お調べします。'), call('get_weather', { location: 'Taipei' })],
  },
  'arguments of any shape': {
    segments: [null, true, 0, -1.5, 'text', [1, [2]], { a: { b: [null] } }].map((args, n) => call('f', args, `c${n}`)),
  },
  'duplicate ids': { segments: [call('f', {}, 'same'), call('g', {}, 'same')] },
  'image': { segments: [{ type: 'image', data: pixel, mimeType: 'image/png' }] },
  'image by URL': { segments: [{ type: 'image', data: 'https://example.com/a.png' }] },
  'audio': { segments: [{ type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' }] },
  'video': { segments: [{ type: 'video', data: 'https://example.com/a.mp4', mimeType: 'video/mp4' }] },
  'ui': { segments: [{ type: 'ui', ui: { component: 'Button', props: { label: 'OK' }, children: [] } }] },
  'ui that is false': { segments: [{ type: 'ui', ui: false }] },
  'mixed': {
    segments: [
      say('a'), say('b'), call('f', { n: 1 }, '1'), { type: 'image', data: pixel, mimeType: 'image/png' },
      call('g', {}), say('c'), { type: 'ui', ui: [1, 2] },
    ],
    metadata: { usage: { inputTokens: 12, outputTokens: 3 }, model: 'm', nested: { a: [1, 2.5, null] } },
  },
  'unknown fields': newer,
};

/** That a provider of the specification can be written with these types at all. */
const echo: IProvider = {
  name: 'echo',
  generate: async (prompt: string, context: IAgentContext): Promise<ProviderResponse> => {
    const tool: ITool | undefined = context.tools.get(prompt);
    return { segments: [tool === undefined ? say(prompt) : call(tool.name, {})] };
  },
};

const tool: ITool = { name: 'read', description: 'Read a file.', parameters: { type: 'object' } };
fixtures['from a provider, a call'] = await echo.generate('read', { tools: new Map([['read', tool]]) });
fixtures['from a provider, a text'] = await echo.generate('hello', { tools: new Map() });

console.log(JSON.stringify(fixtures, null, 2));
