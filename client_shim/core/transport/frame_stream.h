#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace torpor::shim {

// A session's way to one executor: carries frames (proto/wire/batch.h) in both directions, in
// order. All functions but Await are for the holder of the owner's mutex.
class FrameStream {
 public:
  enum class Arrival { kBytes, kNothing, kEnd };
  // What the service thread polls for, and whether OnEvents has something to do at once.
  struct Polled {
    short events = 0;
    bool is_ready = false;
  };

  virtual ~FrameStream() = default;

  // Whether opening the stream has introduced the session: no kAttach is due then.
  virtual bool is_introduced() const = 0;

  // Sends a frame or queues the frame for Write. `frame` holds kFrameRoom free bytes and then the
  // payload, and is empty or of no meaning afterwards.
  virtual void Send(std::vector<std::uint8_t>& frame) = 0;
  // Moves queued bytes on without waiting.
  virtual void Write() = 0;
  // Bytes for which there was no room yet.
  virtual std::size_t unsent_bytes() const = 0;
  // Whether the service thread must poll before more of these can leave.
  virtual bool awaits_service() const = 0;

  // Looks for bytes; with `waits` sleeps until bytes or the stream's end. One thread at a time,
  // without the mutex. The caller then passes the answer to Take.
  virtual Arrival Await(bool waits) = 0;
  virtual void Take(Arrival arrival) = 0;
  // Takes the next payload, valid until the next Await; false if no complete payload is left.
  virtual bool Next(std::span<const std::uint8_t>& payload) = 0;

  // Closes the stream, for `why`, and wakes the thread in Await.
  virtual void End(const std::string& why) = 0;
  // A closed stream stays closed.
  virtual bool closed() const = 0;
  virtual const std::string& why_closed() const = 0;

  // For the service thread's poll. `reads`: the service thread is to read the replies.
  virtual int fd() const = 0;
  virtual Polled Prepare(bool reads) = 0;
  // Takes poll's events. Returns whether queued bytes may leave now.
  virtual bool OnEvents(short events) = 0;
};

}  // namespace torpor::shim
