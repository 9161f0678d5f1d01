#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace torpor::emulator {

class Stream;

// Work of streams that is kept in place of being done, from cuStreamBeginCapture to
// cuStreamEndCapture. The order of submission is an order in which the work may run, whatever the
// streams. Thread-safe.
class Capture {
 public:
  using Work = std::function<CUresult()>;

  // `origin` is where the capture began and must end; `mode` is only kept.
  Capture(const Stream* origin, CUstreamCaptureMode mode) : origin_(origin), mode_(mode) {}

  const Stream* origin() const { return origin_; }
  CUstreamCaptureMode mode() const { return mode_; }

  void Add(Work work);
  // Notes a stream that waited for captured work and takes part from now on.
  void Join(std::shared_ptr<Stream> stream);
  // Notes a call that a capture forbids: ending the capture fails.
  void Invalidate();
  bool is_valid() const;
  // Whether End was called. Events of a capture that has ended are of no use outside.
  bool has_ended() const;

  // Ends the capture on all streams; returns the work in the order of submission.
  std::vector<Work> End();

 private:
  const Stream* const origin_;
  const CUstreamCaptureMode mode_;
  mutable std::mutex mutex_;
  bool is_valid_ = true;
  bool has_ended_ = false;
  std::vector<Work> work_;
  std::vector<std::shared_ptr<Stream>> streams_;
};

}  // namespace torpor::emulator
