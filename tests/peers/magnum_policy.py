"""Answers what the real oslo.policy decides with Magnum's real rules.

Reads JSON lines from the file named by the first argument, writes one JSON line for each.

    {"policy": text or null, "new_defaults": bool, "default_rule": text}
        from now on these rules hold; answers null
    {"rules": [...], "callers": [...], "targets": [...]}
        answers a text of 0 and 1, one for each rule x caller x target, in this order
    {"expressions": [...], "caller": {...}, "target": {...}}
        answers a list of "true", "false" and "error", the last for what oslo.policy cannot read or fails at
    {"names": true}
        answers the names, checks and scopes of all rules
"""

import json
import logging
import os
import sys
import tempfile
import warnings

from oslo_config import cfg
from oslo_policy import _parser
from oslo_policy import policy as oslo_policy

from magnum.common import context
from magnum.common import policies
from magnum.common import policy

warnings.simplefilter("ignore")
CONF = cfg.CONF
CONF([], project="magnum", default_config_files=[], default_config_dirs=[])
FOLDER = tempfile.mkdtemp()


class Complaints(logging.Handler):
    def __init__(self):
        super().__init__(logging.ERROR)
        self.count = 0

    def emit(self, record):
        self.count += 1


COMPLAINTS = Complaints()
logging.getLogger("oslo_policy").addHandler(COMPLAINTS)
logging.getLogger("oslo_policy").propagate = False


def configure(request):
    path = os.path.join(FOLDER, "policy.yaml")
    if os.path.exists(path):
        os.remove(path)
    if request["policy"] is not None:
        with open(path, "w") as file:
            file.write(request["policy"])
    oslo_policy.opts._register(CONF)
    CONF.set_override("policy_file", path, group="oslo_policy")
    CONF.set_override("policy_dirs", [], group="oslo_policy")
    CONF.set_override("policy_default_rule", request["default_rule"], group="oslo_policy")
    CONF.set_override("enforce_new_defaults", request["new_defaults"], group="oslo_policy")
    policy._ENFORCER = None
    policy.init()


def caller(given):
    return context.RequestContext(
        user_id=given["user_id"],
        user_name=given.get("user_name"),
        project_id=given["project_id"],
        project_name=given.get("project_name"),
        user_domain_id=given.get("user_domain_id"),
        roles=given["roles"],
        auth_token_info=given.get("auth_token_info"),
    )


def decide(request):
    callers = [caller(given) for given in request["callers"]]
    answers = []
    for rule in request["rules"]:
        for who in callers:
            for target in request["targets"]:
                try:
                    allowed = policy.enforce(who, rule, target, do_raise=False)
                except TypeError:
                    # It looks inside of what the caller does not have, and the request ends with a 500: no permission.
                    allowed = False
                answers.append("1" if allowed else "0")
    return "".join(answers)


def leaves(check):
    inside = getattr(check, "rules", None) or [rule for rule in [getattr(check, "rule", None)] if rule]
    return [leaf for rule in inside for leaf in leaves(rule)] if inside else [check]


def evaluate(text, request):
    COMPLAINTS.count = 0
    try:
        check = _parser.parse_rule(text)
        if COMPLAINTS.count:
            return "error"
        who = caller(request["caller"]).to_dict()
        # What it would only stumble over if it came that far is an error as well.
        for leaf in leaves(check):
            leaf(request["target"], who, policy._ENFORCER)
        return "true" if check(request["target"], who, policy._ENFORCER) else "false"
    except (SyntaxError, ValueError, TypeError):
        return "error"


def names():
    return [
        [rule.name, rule.check_str, rule.scope_types or [], isinstance(rule, oslo_policy.DocumentedRuleDefault)]
        for rule in policies.list_rules()
    ]


def answer(request):
    if "policy" in request:
        return configure(request)
    if "rules" in request:
        return decide(request)
    if "names" in request:
        return names()
    return [evaluate(text, request) for text in request["expressions"]]


with open(sys.argv[1]) as questions:
    for line in questions:
        print(json.dumps(answer(json.loads(line))))
