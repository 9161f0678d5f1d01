#include "server/confinement/system_calls.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::server {
namespace {

// By subject. Not there, among others: execve, ptrace, process_vm_readv, mount, bpf, keyctl,
// setuid, unshare, io_uring_setup, userfaultfd.
// clang-format off
constexpr std::string_view kAllowed[] = {
    // memory
    "brk", "madvise", "mbind", "membarrier", "memfd_create", "mincore", "mlock", "mlock2", "mmap",
    "mprotect", "mremap", "msync", "munlock", "munmap", "get_mempolicy", "set_mempolicy",
    "pkey_alloc", "pkey_free", "pkey_mprotect",
    // threads
    "arch_prctl", "exit", "exit_group", "futex", "futex_waitv", "futex_wait", "futex_wake",
    "futex_requeue", "get_robust_list", "getcpu", "gettid", "prctl", "restart_syscall", "rseq",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getparam",
    "sched_getscheduler", "sched_setaffinity", "sched_setscheduler", "sched_yield",
    "set_robust_list", "set_tid_address",
    // signals
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend",
    "rt_sigtimedwait", "sigaltstack",
    // time
    "clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time",
    "timer_create", "timer_delete", "timer_settime", "timerfd_create", "timerfd_gettime",
    "timerfd_settime",
    // waiting
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd2", "poll", "ppoll", "pselect6", "select",
    // files
    "access", "chmod", "close", "close_range", "copy_file_range", "dup", "dup2", "dup3",
    "faccessat", "faccessat2", "fadvise64", "fallocate", "fchmod", "fchmodat", "fcntl",
    "fdatasync", "flock", "fstat", "fstatfs", "fsync", "ftruncate", "getcwd", "getdents64",
    "inotify_add_watch", "inotify_init1", "inotify_rm_watch", "ioctl", "link", "linkat", "lseek",
    "lstat", "mkdir",
    "mkdirat", "newfstatat", "open", "openat", "openat2", "pipe", "pipe2", "pread64", "preadv",
    "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readlink", "readlinkat", "readv",
    "rename", "renameat", "renameat2", "rmdir", "sendfile", "stat", "statfs", "statx",
    "sync_file_range", "truncate", "umask", "unlink", "unlinkat", "utimensat", "write", "writev",
    // sockets that are there; new ones below
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    // who and where it is
    "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp", "getpid", "getppid",
    "getpriority", "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid",
    "getuid", "pidfd_open", "setrlimit", "sysinfo", "times", "uname"
};
// clang-format on

// What is allowed in part, and has no place in a log.
constexpr std::string_view kLogged[] = {"clone",  "clone3",     "kill",  "prlimit64",
                                        "socket", "socketpair", "tgkill"};

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

absl::Status ToStatus(int result, std::string_view what) {
  if (result == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(-result, std::string(what));
}

absl::Status AllowNamed(const Filter& filter, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    const int number = seccomp_syscall_resolve_name(std::string(name).c_str());
    if (number == __NR_SCMP_ERROR) continue;  // newer than the library
    // Of another architecture, as time and open are: no rule is needed.
    const int added = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 0);
    TORPOR_RETURN_IF_ERROR(ToStatus(added, name));
  }
  return absl::OkStatus();
}

// Threads, but no process with namespaces of its own. The flags of clone3 are in memory, where a
// filter cannot look; the C library takes clone where there is no clone3.
absl::Status AllowThreads(const Filter& filter) {
  constexpr scmp_datum_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                       CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  TORPOR_RETURN_IF_ERROR(ToStatus(
      seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), "clone3"));
  return ToStatus(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                   SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaces, 0)),
                  "clone");
}

// What may be done to this process, and to no other of the same user.
absl::Status AllowOnItself(const Filter& filter) {
  const auto self = static_cast<scmp_datum_t>(getpid());
  for (const int call : {SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(prlimit64)}) {
    TORPOR_RETURN_IF_ERROR(ToStatus(
        seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 1, SCMP_A0(SCMP_CMP_EQ, self)),
        "signals"));
  }
  return ToStatus(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
                                   SCMP_A0(SCMP_CMP_EQ, 0)),
                  "prlimit64");
}

absl::Status AllowLocalSockets(const Filter& filter) {
  for (const int call : {SCMP_SYS(socket), SCMP_SYS(socketpair)}) {
    TORPOR_RETURN_IF_ERROR(ToStatus(
        seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX)),
        "socket"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RestrictSystemCalls(Seccomp mode) {
  if (mode == Seccomp::kOff) return absl::FailedPreconditionError("seccomp is off");
  const bool logs = mode == Seccomp::kLog;
  const Filter filter(seccomp_init(logs ? SCMP_ACT_LOG : SCMP_ACT_ERRNO(EPERM)), seccomp_release);
  if (!filter) return absl::UnavailableError("no seccomp filter can be made");
  TORPOR_RETURN_IF_ERROR(AllowNamed(filter, kAllowed));
  TORPOR_RETURN_IF_ERROR(logs ? AllowNamed(filter, kLogged) : AllowThreads(filter));
  if (!logs) TORPOR_RETURN_IF_ERROR(AllowOnItself(filter));
  if (!logs) TORPOR_RETURN_IF_ERROR(AllowLocalSockets(filter));
  TORPOR_RETURN_IF_ERROR(ToStatus(seccomp_load(filter.get()), "seccomp"));
  if (logs) return absl::FailedPreconditionError("are logged, not refused, with seccomp: log");
  return absl::OkStatus();
}

}  // namespace torpor::server
