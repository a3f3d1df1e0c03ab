"""The first SCHEDULED slot of an account, which says when the account is due next."""

# Of the account in the row `q`. Its order leaves no index but that of live times.
FIRST_SCHEDULED = """
    select s.schedule_time from slot s
    where s.organization_id = q.organization_id and s.social_account_id = q.social_account_id and s.is_live
        and s.state = 'SCHEDULED'
    order by s.schedule_time limit 1
"""
