//! The sections `[[api]]` of a manifest: the routes of a driver's own API.

use super::reader::{Problems, Section};
use crate::api_route::{ApiMethod, ApiRoute, ApiRoutes};

/// Longest name of a policy rule.
const LONGEST_RULE: usize = 255;

/// The rule of a route that names none.
const DEFAULT_RULE: &str = "cluster:driver_api";

/// Reads the routes, and tells what is wrong with them.
pub(super) fn routes(root: &Section<'_>, problems: &mut Problems<'_>) -> ApiRoutes {
    let Some(sections) = root.tables("api", problems) else {
        return ApiRoutes::default();
    };
    if let Some(first_over) = sections.get(ApiRoutes::MOST) {
        problems.add(
            first_over.offset,
            format!(
                "a driver's own API has at most {} sections [[api]]",
                ApiRoutes::MOST
            ),
        );
    }
    let mut routes: Vec<ApiRoute> = Vec::new();
    for section in sections.iter().take(ApiRoutes::MOST) {
        let Some(route) = route(section, problems) else {
            continue;
        };
        for method in &route.methods {
            let is_taken = |other: &ApiRoute| other.path == route.path && other.methods.contains(method);
            if routes.iter().any(is_taken) {
                problems.add(
                    section.offset,
                    format!("{method} {} is in two sections [[api]]: remove one", route.path),
                );
            }
        }
        routes.push(route);
    }
    ApiRoutes::new(routes)
}

fn route(section: &Section<'_>, problems: &mut Problems<'_>) -> Option<ApiRoute> {
    section.only(&["path", "methods", "policy", "read_only"], problems);
    section.require("path", "path = \"disk/usage\"", problems);
    section.require("methods", "methods = [\"GET\"]", problems);
    section.require("read_only", "read_only = true", problems);
    let path = path(section, problems);
    let methods = methods(section, problems);
    let policy = rule(section, problems);
    let read_only = section.flag("read_only", problems);
    let (path, methods, policy, read_only) = (path?, methods?, policy?, read_only?);
    if !read_only && methods.contains(&ApiMethod::Get) {
        problems.add(
            section.key_offset("read_only").unwrap_or(section.offset),
            "a GET changes nothing: with read_only = false take GET out of 'methods', or give it a section of its own",
        );
    }
    Some(ApiRoute {
        path,
        methods,
        policy,
        read_only,
    })
}

fn path(section: &Section<'_>, problems: &mut Problems<'_>) -> Option<String> {
    let at = section.text("path", problems)?;
    if ApiRoute::is_path(&at.value) {
        return Some(at.value);
    }
    problems.add(
        at.offset,
        format!(
            "'{}' is not a path of a driver's own API: use 1 to {} segments of a-z, 0-9, '_' and '-' with '/' \
             between them, at most {} characters",
            at.value,
            ApiRoute::MOST_SEGMENTS,
            ApiRoute::LONGEST_PATH
        ),
    );
    None
}

fn methods(section: &Section<'_>, problems: &mut Problems<'_>) -> Option<Vec<ApiMethod>> {
    let given = section.texts("methods", problems)?;
    if given.is_empty() {
        problems.add(
            section.key_offset("methods").unwrap_or(section.offset),
            "'methods' in [[api]] is empty: name at least one",
        );
        return None;
    }
    let mut methods = Vec::new();
    let mut is_right = true;
    for at in given {
        match at.value.parse::<ApiMethod>() {
            Ok(method) if methods.contains(&method) => {
                is_right = false;
                problems.add(
                    at.offset,
                    format!("the method {method} is named twice: remove one"),
                );
            }
            Ok(method) => methods.push(method),
            Err(()) => {
                is_right = false;
                let known: Vec<&str> = ApiMethod::ALL.iter().map(|method| method.as_str()).collect();
                problems.add(
                    at.offset,
                    format!("'{}' is not a method: use {}", at.value, known.join(", ")),
                );
            }
        }
    }
    is_right.then_some(methods)
}

/// Whether there is such a rule is for the API to say, which knows the policy files.
fn rule(section: &Section<'_>, problems: &mut Problems<'_>) -> Option<String> {
    if section.key_offset("policy").is_none() {
        return Some(DEFAULT_RULE.to_owned());
    }
    let at = section.text("policy", problems)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:.".contains(&byte);
    if !at.value.is_empty() && at.value.len() <= LONGEST_RULE && at.value.bytes().all(allowed) {
        return Some(at.value);
    }
    problems.add(
        at.offset,
        format!(
            "'{}' is not the name of a policy rule, for example: policy = \"cluster:get\"",
            at.value
        ),
    );
    None
}

#[cfg(test)]
mod tests {
    use crate::Manifest;
    use crate::api_route::{ApiMethod, FoundRoute};

    const HEAD: &str = "[driver]\nname = 'disk'\nversion = '1.0.0'\nengine = 'exec'\n[[provides]]\n\
                        server_type = 'vm'\nos = 'ubuntu'\ncoe = 'kubernetes'\n[exec]\nprogram = 'run'\n";

    fn parse(sections: &str) -> Result<Manifest, Vec<String>> {
        Manifest::parse(&format!("{HEAD}{sections}"))
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    fn told(sections: &str) -> String {
        parse(sections).unwrap_err().join("\n")
    }

    #[test]
    fn a_driver_without_sections_has_no_api_of_its_own() {
        assert!(parse("").unwrap().info.api.is_empty());
    }

    #[test]
    fn routes_are_read_and_the_rule_has_a_default() {
        let manifest = parse(
            "[[api]]\npath = 'disk/usage'\nmethods = ['GET']\npolicy = 'cluster:get'\nread_only = true\n\
             [[api]]\npath = 'notes'\nmethods = ['PUT', 'DELETE']\nread_only = false\n",
        )
        .unwrap();
        let api = manifest.info.api;
        let FoundRoute::Route(usage) = api.find("disk/usage", ApiMethod::Get) else {
            panic!("found");
        };
        assert_eq!((usage.policy.as_str(), usage.read_only), ("cluster:get", true));
        let FoundRoute::Route(notes) = api.find("notes", ApiMethod::Delete) else {
            panic!("found");
        };
        assert_eq!(
            (notes.policy.as_str(), notes.read_only),
            ("cluster:driver_api", false)
        );
    }

    #[test]
    fn a_method_that_changes_something_may_be_declared_to_change_nothing() {
        assert!(parse("[[api]]\npath = 'query'\nmethods = ['GET', 'POST']\nread_only = true\n").is_ok());
    }

    #[test]
    fn each_mistake_has_its_line() {
        for (sections, words) in [
            ("[[api]]\n", "driver.toml:11: 'path' is missing in [[api]]"),
            ("[[api]]\n", "'methods' is missing in [[api]]"),
            ("[[api]]\n", "'read_only' is missing in [[api]]"),
            (
                "[[api]]\npath = '/usage'\nmethods = ['GET']\nread_only = true\n",
                "driver.toml:12: '/usage' is not a path",
            ),
            (
                "[[api]]\npath = 'u'\nmethods = []\nread_only = true\n",
                "driver.toml:13: 'methods' in [[api]] is empty",
            ),
            (
                "[[api]]\npath = 'u'\nmethods = ['HEAD']\nread_only = true\n",
                "driver.toml:13: 'HEAD' is not a method: use GET, POST, PUT, PATCH, DELETE",
            ),
            (
                "[[api]]\npath = 'u'\nmethods = ['PUT', 'PUT']\nread_only = false\n",
                "the method PUT is named twice",
            ),
            (
                "[[api]]\npath = 'u'\nmethods = ['GET', 'PUT']\nread_only = false\n",
                "driver.toml:14: a GET changes nothing",
            ),
            (
                "[[api]]\npath = 'u'\nmethods = ['GET']\npolicy = 'a b'\nread_only = true\n",
                "driver.toml:14: 'a b' is not the name of a policy rule",
            ),
            (
                "[[api]]\npath = 'u'\nmethods = ['GET']\nrule = 'x'\nread_only = true\n",
                "unknown key 'rule' in [[api]]",
            ),
            (
                "[[api]]\npath = 'u'\nmethods = ['GET']\nread_only = true\n\
                 [[api]]\npath = 'u'\nmethods = ['POST', 'GET']\nread_only = true\n",
                "driver.toml:15: GET u is in two sections",
            ),
        ] {
            let told = told(sections);
            assert!(told.contains(words), "{words}\n--\n{told}");
        }
    }

    #[test]
    fn api_of_another_type_is_an_error() {
        let told = Manifest::parse(&format!("api = 3\n{HEAD}")).unwrap_err();
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert!(
            told.join("\n").contains("must be one or more sections [[api]]"),
            "{told:?}"
        );
    }

    #[test]
    fn routes_are_bounded_in_number() {
        let many = |count: usize| -> String {
            (0..count)
                .map(|n| format!("[[api]]\npath = 'p{n}'\nmethods = ['GET']\nread_only = true\n"))
                .collect()
        };
        assert!(parse(&many(32)).is_ok());
        let told = told(&many(33));
        assert!(told.contains("at most 32 sections [[api]]"), "{told}");
    }
}
