#include "tests/conformance/assembler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace torpor::conformance {
namespace {

std::filesystem::path MakeFolder() {
  std::string name = std::filesystem::temp_directory_path() / "conformance.XXXXXX";
  if (mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "a folder in " + name);
  return name;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whether the command exits with 0. What it prints goes to `log`.
bool Succeeds(std::vector<std::string> command, const std::filesystem::path& log) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot run " + command[0] + ": " + strerror(error));
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
    throw std::runtime_error(command[0] + " has crashed");
  return WEXITSTATUS(status) == 0;
}

}  // namespace

// Others may follow from the first error.
bool MachineCode::IsForAnotherArchitecture() const {
  const std::size_t error = refusal.find("error   :");
  if (error == std::string::npos) return false;
  return refusal.substr(error, refusal.find('\n', error) - error).find(".target") !=
         std::string::npos;
}

Assembler::Assembler(std::string ptxas, std::string architecture)
    : ptxas_(std::move(ptxas)), architecture_(std::move(architecture)), folder_(MakeFolder()) {}

Assembler::~Assembler() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

MachineCode Assembler::Assemble(const std::string& ptx) {
  const std::string number = std::to_string(modules_++);
  const std::filesystem::path source = folder_ / (number + ".ptx");
  const std::filesystem::path target = folder_ / (number + ".cubin");
  const std::filesystem::path log = folder_ / (number + ".log");
  std::ofstream(source) << ptx;
  MachineCode code;
  if (Succeeds({ptxas_, "-arch=" + architecture_, "-o", target, source}, log))
    code.image = ReadFile(target);
  else
    code.refusal = ReadFile(log);
  for (const auto& file : {source, target, log}) std::filesystem::remove(file);
  return code;
}

}  // namespace torpor::conformance
