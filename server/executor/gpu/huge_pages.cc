#include "server/executor/gpu/huge_pages.h"

#include <fstream>

namespace torpor::executor {

bool GivesSharedHugePages(const std::string& file) {
  // All words, the present one in brackets: "always within_size advise [never] deny force".
  std::ifstream stream(file);
  std::string word;
  while (stream >> word) {
    if (word.front() == '[') return word != "[never]" && word != "[deny]";
  }
  return false;
}

}  // namespace torpor::executor
