#include "tests/pytorch/moved_function.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace torpor::e2e {

nlohmann::json MovedFunction::Ask(const std::string& path) const {
  const Reply reply = node_.PostOne("/function/" + name_ + "/" + path, "{}");
  EXPECT_EQ(reply.status, 200) << reply.body;
  node_.WaitUntilIdle();
  auto answer = nlohmann::json::parse(reply.body, nullptr, false);
  return answer.is_object() ? answer : nlohmann::json::object();
}

void MovedFunction::Evict() const {
  node_.Torporctl({"evict", name_});
  EXPECT_EQ(node_.ResidentGpus(name_), nlohmann::json::array());
}

void MovedFunction::LoadTo(int gpu) const {
  node_.Torporctl({"load", name_, "--gpu", std::to_string(gpu)});
  const nlohmann::json there = node_.ResidentGpus(name_);
  EXPECT_EQ(std::count(there.begin(), there.end(), gpu), 1) << there;
}

}  // namespace torpor::e2e
