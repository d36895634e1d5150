// Runs the scenarios of docs/conformance in C++. The argument is a file of
// `cargo run -p testkit --example scenarios c`, the second a folder for a filter's file.

#include <fstream>
#include <iostream>
#include <koel.hpp>
#include <map>
#include <nlohmann/json.hpp>

using nlohmann::json;

// By the status below 0: the codes of docs/conformance/README.md.
static const char *const CODES[] = {"ok", "full", "settings", "bytes", "memory", "internal",
                                    "base", "lines", "members", "range", "different", "io",
                                    "argument", "read only"};

static std::string unhex(const std::string &digits) {
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
        bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

static std::string hex(const std::string &bytes) {
    std::string digits;
    for (const unsigned char byte : bytes) {
        digits += "0123456789abcdef"[byte / 16];
        digits += "0123456789abcdef"[byte % 16];
    }
    return digits;
}

static std::string text(const json &step, const char *name) { return step.value(name, ""); }

static std::string edited(const json &step, std::string bytes) {
    if (step.contains("flip")) bytes[step["flip"].get<std::size_t>()] ^= 1;
    bytes.resize(bytes.size() - step.value("cut", std::size_t(0)));
    return bytes + unhex(text(step, "append"));
}

static koel::filter built(const json &step) {
    koel::options options;
    options.grow = step.value("grow", false);
    options.grow_from = step.value("grow_from", 0);
    options.fast = text(step, "prefer") == "fast";
    if (step.contains("seed")) options.seed = std::stoull(text(step, "seed"));
    if (step.contains("secret")) {
        const std::string secret = unhex(text(step, "secret"));
        options.secret.emplace();
        std::copy(secret.begin(), secret.end(), options.secret->begin());
    }
    return koel::filter(std::stoull(text(step, "capacity")), step.value("rate", 0.001), options);
}

struct Door {
    std::string file;
    std::map<std::string, koel::filter> filters;
    std::map<std::string, std::string> patches;

    koel::filter &named(const json &step, const char *field) {
        return filters.at(step.value(field, "f"));
    }

    koel::filter reopened(const koel::filter &filter) {
        filter.save(file);
        const koel::filter mapped = koel::filter::open(file);
        mapped.verify();
        return mapped.copy();
    }

    koel::filter made(const std::string &verb, const json &step) {
        if (verb == "build") return built(step);
        if (verb == "copy") return named(step, "of").copy();
        if (verb == "reopen") return reopened(named(step, "filter"));
        if (verb == "patched") {
            return named(step, "of").patched(edited(step, patches.at(text(step, "patch"))));
        }
        const bool given = step.contains("image");
        const std::string image = given ? unhex(text(step, "image")) : named(step, "of").to_bytes();
        return koel::filter::from_bytes(edited(step, image));
    }

    // Does a step. The answer is null if it has none.
    json run(const json &step) {
        const std::string verb = text(step, "do");
        for (const char *maker : {"build", "open", "list", "copy", "reopen", "patched"}) {
            if (verb == maker) {
                filters.insert_or_assign(step.value("filter", "f"), made(verb, step));
                return nullptr;
            }
        }
        if (verb == "patch") {
            const std::string patch = named(step, "from").patch_to(named(step, "to"));
            patches[text(step, "patch")] = patch;
            return hex(patch);
        }
        koel::filter &f = named(step, "filter");
        std::vector<std::string> keys;
        for (const auto &key : step.value("keys", json::array())) keys.push_back(unhex(key));
        const std::string key = unhex(text(step, "key"));
        const bool copies = step.value("copies", false);
        if (verb == "add" && copies) return f.add_copy(key), true;
        if (verb == "add") return f.add(key);
        if (verb == "add_many" && copies) return f.add_copies(keys);
        if (verb == "add_many") return f.add_many(keys);
        if (verb == "remove") return f.remove(key);
        if (verb == "remove_many") return f.remove_many(keys);
        if (verb == "contains") return f.contains(key);
        if (verb == "contains_many") return f.contains_many(keys);
        if (verb == "contains_url") return f.contains_url(text(step, "url"));
        if (verb == "count") return f.count(key);
        if (verb == "count_many") return f.count_many(keys);
        if (verb == "refute") return f.refute(key);
        if (verb == "refute_many") return f.refute_many(keys, step.value("force", false));
        if (verb == "clear") return f.clear(), nullptr;
        if (verb == "bytes") return f.to_bytes() == named(step, "with").to_bytes();
        if (verb == "header") return hex(f.to_bytes().substr(0, 192));
        if (verb == "line_options") return f.line_options();
        if (verb == "merge") {
            const koel::filter &other = named(step, "with");
            return text(step, "counts") == "sum" ? f.merge_sum(other) : f.merge_max(other), nullptr;
        }
        const koel_info info = f.info();
        if (verb == "len") return info.len;
        if (verb == "capacity") return info.capacity;
        if (verb == "rate") return info.rate;
        if (verb == "corrections") return info.corrections;
        if (verb == "growable") return info.growable;
        if (verb == "grown") return info.grown;
        throw std::logic_error("no verb " + verb);
    }
};

// Of many keys, a number stands for the sum of the answers.
static json sum_of(const json &is) {
    if (!is.is_array()) return is;
    std::uint64_t sum = 0;
    for (const json &one : is) sum += one.is_boolean() ? one.get<bool>() : one.get<std::uint64_t>();
    return sum;
}

static bool accepts(const json &step, const std::string &code, const json &is) {
    if (code != "ok" || step.contains("error")) return code == text(step, "error");
    if (step.contains("at_most")) return sum_of(is) <= step["at_most"];
    if (!step.contains("is")) return true;
    return step["is"].is_array() ? is == step["is"] : sum_of(is) == step["is"];
}

int main(int count, char **arguments) {
    if (count != 3) return std::cerr << "usage: conformance SCENARIOS FOLDER\n", 2;
    std::ifstream stream(arguments[1]);
    int ran = 0, failed = 0;
    for (const json &scenario : json::parse(stream)) {
        Door door{std::string(arguments[2]) + "/filter.koel", {}, {}};
        int at = 0;
        for (const json &step : scenario["steps"]) {
            std::string code = "ok", said;
            json is;
            try {
                is = door.run(step);
            } catch (const koel::error &error) {
                code = CODES[-error.status];
                said = error.what();
            }
            at++;
            if (accepts(step, code, is)) continue;
            std::cerr << text(scenario, "place") << ", step " << at << ": " << text(step, "do")
                      << " answers " << code << " " << is << " " << said << "\n";
            failed++;
            break;
        }
        ran++;
    }
    std::cout << "C++: ran " << ran << " scenarios, " << failed << " failed\n";
    return ran == 0 || failed > 0;
}
