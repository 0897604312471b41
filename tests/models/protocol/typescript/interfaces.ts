/** The interfaces of the specification (3-openstarry-protocol, sections 3 and 4), as they stand there. */

export interface ToolCall {
  /**
   * 呼び出しの一意の識別コード (追跡とコールバックのマッチングに使用)
   * 一部の LLM ( OpenAI など) はこの ID を提供します。提供されない場合、プロバイダーは UUID を自動生成する必要があります。
   */
  id?: string;

  /**
   * 呼び出すツール名 (登録されている tool.name と完全に一致する必要があります)
   */
  name: string;

  /**
   * ツールに渡されるパラメータオブジェクト
   */
  args: any;
}

export type ContentType = 'text' | 'image' | 'audio' | 'video' | 'ui' | 'tool_call';

export interface ContentSegment {
  type: ContentType;
  
  /**
   * type='text' の場合に使用
   */
  text?: string;
  
  /**
   * type='image' | 'audio' | 'video' の場合に使用
   * 通常は Base64 エンコードされたデータまたは URL
   */
  data?: string;
  
  /**
   * メディアタイプ (MIME Type), e.g., "image/png", "audio/mp3"
   */
  mimeType?: string;

  /**
   * type='tool_call' の場合に使用
   */
  toolCall?: ToolCall;

  /**
   * type='ui' の場合に使用
   * フロントエンドがレンダリングすべきコンポーネント (JSON) を記述
   */
  ui?: any;
}

export interface ProviderResponse {
  /**
   * 順序付けられたコンテンツセグメントのリスト
   * エージェントは同時に話し、画像を表示し、ツールを実行することができます。
   */
  segments: ContentSegment[];

  /**
   * 追加のメタデータ ( Token 使用量、モデルの遅延など)
   */
  metadata?: any;
}

export interface IProvider {
  name: string;
  generate(prompt: string, context: IAgentContext): Promise<ProviderResponse>;
}

export interface IAgentContext {
  // ... その他の属性
  
  /**
   * 能力の反映 (Capability Reflection)
   * エージェントが現在どのようなツール (行蘊) を持っているかをプロバイダーに知らせます。
   * Map のキーはツール名です。
   */
  tools: Map<string, ITool>;
}

/** What section 2 shows of a tool; the specification has no interface of it. */
export interface ITool {
  name: string;
  description: string;
  parameters: object;
}
