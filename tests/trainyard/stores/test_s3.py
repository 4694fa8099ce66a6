"""S3 stores: what the plan and the reports say about them."""

from __future__ import annotations

from tests.support.stackfile import Edit, at, environment_plan, planned
from trainyard.objects.iam.s3 import S3Plan
from trainyard.plans.identity import Identity
from trainyard.reports import plan
from trainyard.reports.costs.cost import estimate
from trainyard.reports.minutes.timeline import schedule

ME = Identity(project="trainyard", stack="s" * 32, region="ap-northeast-2")
MOUNTED = at("jobs.t5-large.storage.corpus", {"path": "/corpus"})


def corpus(**settings: object) -> Edit:
    return at("storage.corpus", {"s3": settings})


def test_make_plan_says_what_jobs_may_do_with_a_bucket_and_which_it_is() -> None:
    said = plan.text(environment_plan(corpus(bucket="our-corpus")))
    assert "S3, read only" in said and "corpus shows the bucket our-corpus" in said
    made = plan.text(environment_plan(corpus(writable=True)))
    assert "S3, new files" in made and "-<account>, which is created" in made


def test_the_estimate_names_a_bucket_as_what_costs_by_use_and_the_requests_that_write() -> None:
    usage = [line.what for line in estimate(environment_plan(corpus())).usage]
    assert "S3 corpus" in usage and "S3 corpus, requests that write" not in usage
    usage = [line.what for line in estimate(environment_plan(corpus(writable=True))).usage]
    assert "S3 corpus, requests that write" in usage


def test_a_job_waits_for_the_driver_of_a_bucket_and_for_no_file_system() -> None:
    stages = {s.name: s for s in schedule(environment_plan(corpus(), MOUNTED)).stages}
    assert "aws-mountpoint-s3-csi-driver" in stages["batching"].after
    assert "file system corpus" not in stages


def test_a_bucket_is_in_every_zone() -> None:
    one_node = [at("jobs.t5-large.nodes", 1), at("jobs.t5-large.storage", {})]
    away = at("pools.g6e.fallback_zones", ["ap-northeast-2b"])
    warnings = planned(corpus(), *one_node, MOUNTED, away).warnings
    assert not [w for w in warnings if "another zone" in w.text and "corpus" in w.text]


def test_the_name_of_a_bucket_and_the_account_fit_into_what_s3_takes() -> None:
    assert len(ME.short_name("c" * 32, 50)) + len("-111122223333") <= 63


def test_a_claim_has_another_name_where_jobs_may_write_or_the_bucket_is_another() -> None:
    def claim(**settings: object) -> str:
        claims = environment_plan(corpus(**settings)).workspace.claims
        return next(claim.name for claim in claims if claim.store == "corpus")

    assert len({claim(), claim(writable=True), claim(bucket="our-corpus")}) == 3


def test_old_versions_end_after_thirty_days_unless_the_stack_file_says_otherwise() -> None:
    def days(**settings: object) -> tuple[bool, int]:
        plan = environment_plan(corpus(**settings)).stores["corpus"]
        assert isinstance(plan, S3Plan)
        return plan.versioning, plan.old_versions_days

    assert (days(), days(versioning=True)) == ((False, 30), (True, 30))
    assert days(versioning=True, old_versions_days=7) == (True, 7)
