// Search without a server: a browser starts no worker for a page that it opened as a file, so a hidden frame does its work.
"use strict";
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.body.appendChild(document.createElement("iframe"));
      this.frame.hidden = true;
      addEventListener("message", (event) => {
        if (event.source === this.frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      const page = this.frame.contentDocument;
      page.open();
      page.write(`<body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...urls) => urls.reduce((done, url) => done.then(() => new Promise((loaded) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = loaded;
          document.body.append(script);
        })), Promise.resolve());
      <\/script><script src="${url}"><\/script></body>`);
      page.close();
      this.ready = new Promise((loaded) => (this.frame.contentWindow.onload = loaded));
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
