#include "client_shim/core/session/service_thread.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>

namespace torpor::shim {
namespace {

timespec ToTimespec(std::chrono::nanoseconds span) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(span);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((span - seconds).count())};
}

}  // namespace

ServiceThread::ServiceThread() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ServiceThread::~ServiceThread() { Stop(); }

void ServiceThread::Start(Work& work) {
  // The program's signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, &work] { Run(work); });
  pthread_setname_np(thread_.native_handle(), "torpor-client");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ServiceThread::Wake() const {
  const std::uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) {
    // EAGAIN: the counter is at its limit, so a wake-up is pending.
  }
}

void ServiceThread::TakeWakes() const {
  std::uint64_t count = 0;
  if (read(wake_.get(), &count, sizeof count) < 0) {
    // EAGAIN: nothing to take.
  }
}

void ServiceThread::Stop() {
  is_stopping_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
}

void ServiceThread::Run(Work& work) {
  std::vector<pollfd> fds;
  while (!is_stopping_) {
    fds.assign(1, {wake_.get(), POLLIN, 0});
    const std::optional<Time> until = work.Prepare(fds);
    timespec span{};
    // Compared first: Time::min() is due at once, and the difference would overflow.
    if (const Time now = std::chrono::steady_clock::now(); until && *until > now)
      span = ToTimespec(*until - now);
    if (ppoll(fds.data(), fds.size(), until ? &span : nullptr, nullptr) < 0)
      for (pollfd& fd : fds) fd.revents = 0;
    if (is_stopping_) return;
    if (fds.front().revents != 0) TakeWakes();
    work.OnReady(std::span(fds).subspan(1));
  }
}

}  // namespace torpor::shim
