// The extension wants a module; the one-file build of Mermaid (loaded before this) is a classic script.
export default globalThis.mermaid;
