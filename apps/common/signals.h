#pragma once

namespace weft::apps {

// StopSignals turns SIGINT and SIGTERM into a flag while it lives, and ignores SIGPIPE. A second signal of the kind
// kills as usual. One per process at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // requested: a signal came. Any thread; no system call.
  bool requested() const;
  // Readable once a signal came, and from then on; nobody reads it.
  int fd() const;
};

}  // namespace weft::apps
