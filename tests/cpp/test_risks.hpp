#pragma once

namespace metrimax::tests {

void test_risks();   // against brute force
void test_threads(); // against one thread

} // namespace metrimax::tests
